# Commands of this repository; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build tools demo demo-operator test soak bench check sim charts fmt gen clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

tools: ## Build the pinned tools and the chart engine, once, into the user's cache folder
	@tests/tools/build

build: tools ## Build everything that is run: clicklink, navin-manager, navin-operator, the chart engine beside them
	@cargo build --locked --workspace --bins
	@install -m 0755 "$$(tests/tools/build --where clicklink-render | cut -d= -f2)" target/debug/clicklink-render

demo: build ## Run the main job on a real control plane and tell the story (KEEP=1 leaves it running)
	@target/debug/demo

demo-operator: build ## Tell a component's life at the operator on a real control plane, as a person at kubectl sees it
	@target/debug/demo-operator

test: build ## Run all tests, the system tests on real parts included
	@cargo test --locked --workspace

soak: build ## Run the tests that have a longer form in it: hundreds of kills, many more simulated stories, thousands of executors
	@SOAK=1 cargo test --locked --package executor-core --test simulation -- --nocapture
	@SOAK=1 cargo test --locked --package system-tests --test journal -- --nocapture
	@SOAK=1 cargo test --locked --package system-tests --test updates interrupted -- --nocapture
	@EXECUTORS=2000 cargo test --locked --package navin-manager --test boundaries -- --nocapture shedding

bench: tools ## Measure the release binaries: memory, processor, acknowledgements (IDLE_SECONDS=300, EXECUTORS=1000, OBJECTS=100, COMPONENTS=1000, ONLY=one part; a quarter of an hour)
	@cargo build --release --locked --bin clicklink --bin navin-manager --bin navin-operator --bin testbed-supervisor --bin bench
	@install -m 0755 "$$(tests/tools/build --where clicklink-render | cut -d= -f2)" target/release/clicklink-render
	@target/release/bench

check: ## Format, lints, and whether generated files are fresh
	@cargo fmt --all -- --check
	@cargo clippy --locked --workspace --all-targets -- -D warnings
	@test -z "$$(gofmt -l render/engine)" || { gofmt -l render/engine; exit 1; }
	@$(MAKE) --no-print-directory gen
	@git diff --exit-code -- docs/reference docs/errors/README.md docs/errors/http/README.md operator/config || { echo 'generated files are stale: run `make gen` and commit'; exit 1; }

sim: ## Play the executor's decisions through faults: SEED=first story, RUNS=how many (RUNS=1 tells it)
	@SEED=$(SEED) RUNS=$(RUNS) cargo test --locked --package executor-core --test simulation -- --nocapture

charts: build ## Compare generated charts with helm: SEED=first chart, RUNS=how many
	@SEED=$(SEED) RUNS=$(RUNS) cargo test --locked --package system-tests --test charts -- --nocapture generated

fmt: ## Format all code
	@cargo fmt --all && gofmt -w render/engine

gen: ## Write generated files anew: the command-line reference, the indexes of errors, the OpenAPI document, the operator's manifests
	@cargo build --locked --quiet --bin clicklink --bin navin-manager --bin navin-operator
	@mkdir -p docs/reference docs/errors/http
	@target/debug/clicklink reference > docs/reference/clicklink.md
	@target/debug/clicklink reference --errors > docs/errors/README.md
	@target/debug/clicklink openapi > docs/reference/openapi.json
	@target/debug/navin-manager reference > docs/reference/navin-manager.md
	@target/debug/navin-operator reference > docs/reference/navin-operator.md
	@target/debug/navin-manager reference --errors > docs/errors/http/README.md
	@mkdir -p operator/config/crd operator/config/manager operator/config/rbac
	@target/debug/navin-operator crd > operator/config/crd/platform.navin.ai_managedcomponents.yaml
	@target/debug/navin-operator deployment > operator/config/manager/manager.yaml
	@for file in role role_binding manager_access; do target/debug/navin-operator rbac $$file > operator/config/rbac/$$file.yaml || exit 1; done

clean: ## Remove build results; tools in the cache folder stay
	@cargo clean
