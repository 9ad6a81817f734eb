package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

// notes is what Helm prints after an installation and never applies.
const notes = "NOTES.txt"

// rendering is a chart whose templates were executed; what they printed is not read yet.
type rendering struct {
	chart     *chart.Chart
	caps      *common.Capabilities
	texts     map[string]string
	functions []string
}

// render does what `helm template --include-crds` does, always as a first installation. Chart, values and capabilities are made anew for
// each rendering, since templates may write into them: nothing that one has done is there for the next.
func render(req *request, from asked) (*rendering, error) {
	loaded, err := load(req.Archive)
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := json.Unmarshal(req.Values, &values); err != nil {
		return nil, fmt.Errorf("the values are not readable: %w", err)
	}
	caps, err := exactCapabilities(req.Capabilities)
	if err != nil {
		return nil, err
	}
	if err := checkInstallable(loaded, caps); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: req.Release, Namespace: req.Namespace, Revision: 1, IsInstall: true}
	renderValues, err := util.ToRenderValues(loaded, values, options, caps)
	if err != nil {
		return nil, err
	}
	made := newInvention(from.Clock, from.Seed)
	texts, err := engine.Engine{CustomTemplateFuncs: made.functions()}.Render(loaded, renderValues)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(texts, func(name, _ string) bool { return strings.HasSuffix(name, notes) })
	return &rendering{chart: loaded, caps: caps, texts: texts, functions: made.called()}, nil
}

// same says that another rendering of the same chart printed the same, and so has the same objects.
func (r *rendering) same(other *rendering) bool {
	return maps.Equal(r.texts, other.texts) && slices.Equal(r.functions, other.functions)
}

// objects reads what was printed, which takes most of a rendering's time.
func (r *rendering) objects() ([]object, error) {
	objects, err := crds(r.chart)
	if err != nil {
		return nil, err
	}
	templates, err := sorted(r.texts, r.caps)
	return append(objects, templates...), err
}

// load reads a chart of the versions that Helm installs: a later one is refused, not taken for an older one.
func load(archive []byte) (*chart.Chart, error) {
	read, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	loaded, ok := read.(*chart.Chart)
	if !ok {
		return nil, errors.New("unsupported chart version")
	}
	return loaded, nil
}

// exactCapabilities are those that Helm has on such a cluster, with one difference: a chart's kubeVersion is compared with the release
// that the version names, as `helm template` does it, and not with a provider's suffix taken for a release to come.
func exactCapabilities(asked capabilities) (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(asked.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("capabilities: kubeVersion %q: %w", asked.KubeVersion, err)
	}
	if asked.KubeMajor != "" {
		version.Major = asked.KubeMajor
	}
	if asked.KubeMinor != "" {
		version.Minor = asked.KubeMinor
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = *version
	caps.APIVersions = slices.Clone(common.VersionSet(asked.APIVersions))
	caps.HelmVersion.Version = helmVersion
	return caps, nil
}

// checkInstallable makes the checks that Helm's commands make before they render.
func checkInstallable(loaded *chart.Chart, caps *common.Capabilities) error {
	meta := loaded.Metadata
	if meta.Type != "" && meta.Type != "application" {
		return fmt.Errorf("%s charts are not installable", meta.Type)
	}
	var missing []string
	for _, dependency := range meta.Dependencies {
		there := func(sub *chart.Chart) bool { return sub.Name() == dependency.Name }
		if !slices.ContainsFunc(loaded.Dependencies(), there) {
			missing = append(missing, dependency.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("found in Chart.yaml, but missing in charts/ directory: %s", strings.Join(missing, ", "))
	}
	if meta.KubeVersion != "" && !chartutil.IsCompatibleRange(meta.KubeVersion, caps.KubeVersion.String()) {
		return fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", meta.KubeVersion, caps.KubeVersion.Version)
	}
	return nil
}

// crds are the objects of the crds/ folders, sub-charts' too, by file: Helm loads sub-charts in no fixed order.
func crds(loaded *chart.Chart) ([]object, error) {
	files := loaded.CRDObjects()
	slices.SortStableFunc(files, func(a, b chart.CRD) int { return strings.Compare(a.Filename, b.Filename) })
	var objects []object
	for _, file := range files {
		for _, document := range documents(string(file.File.Data)) {
			found, err := toObject(file.Filename, document)
			if err != nil {
				return nil, err
			}
			if found != nil {
				found.CRD = true
				objects = append(objects, *found)
			}
		}
	}
	return objects, nil
}

// sorted are the objects of the templates in Helm's order of installation, hooks after the others. Hooks of unknown events, which
// Helm drops with a word in its log, are kept with their events.
func sorted(files map[string]string, caps *common.Capabilities) ([]object, error) {
	dropped := map[string]string{}
	for name, content := range files {
		if !strings.HasPrefix(path.Base(name), "_") {
			dropped[name] = content
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, caps.APIVersions, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, manifest := range manifests {
		found, err := toObject(manifest.Name, manifest.Content)
		if err != nil {
			return nil, err
		}
		if found != nil {
			objects = append(objects, *found)
		}
	}
	for _, hook := range hooks {
		found, err := toObject(hook.Path, hook.Manifest)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		found.Weight = hook.Weight
		for _, event := range hook.Events {
			found.Hooks = append(found.Hooks, event.String())
		}
		for _, policy := range hook.DeletePolicies {
			found.DeletePolicy = append(found.DeletePolicy, policy.String())
		}
		objects = append(objects, *found)
	}
	unknown, err := unknownHooks(dropped)
	return append(objects, unknown...), err
}

// knownEvents are Helm's, and the two old names it still reads.
var knownEvents = []string{
	"pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "test",
	"test-success",
}

// unknownHooks finds what SortManifests drops: hooks of which any event is unknown.
func unknownHooks(files map[string]string) ([]object, error) {
	var objects []object
	for _, name := range slices.Sorted(keysOf(files)) {
		for _, document := range documents(files[name]) {
			var head releaseutil.SimpleHead
			if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.Metadata == nil {
				continue
			}
			annotation, isHook := head.Metadata.Annotations[release.HookAnnotation]
			if !isHook {
				continue
			}
			var events []string
			for event := range strings.SplitSeq(annotation, ",") {
				events = append(events, strings.ToLower(strings.TrimSpace(event)))
			}
			if !slices.ContainsFunc(events, func(event string) bool { return !slices.Contains(knownEvents, event) }) {
				continue
			}
			found, err := toObject(name, document)
			if err != nil {
				return nil, err
			}
			if found != nil {
				found.Hooks = []string{"unknown"}
				found.Hooks = append(found.Hooks, slices.DeleteFunc(events, func(event string) bool { return slices.Contains(knownEvents, event) })...)
				objects = append(objects, *found)
			}
		}
	}
	return objects, nil
}

func keysOf(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	}
}

// documents splits a file as Helm does, in the file's order.
func documents(content string) []string {
	split := releaseutil.SplitManifests(content)
	names := slices.Collect(keysOf(split))
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	ordered := make([]string, 0, len(names))
	for _, name := range names {
		ordered = append(ordered, split[name])
	}
	return ordered
}

var errNoObject = errors.New("a document is not an object")

// toObject reads YAML as Kubernetes does, with the line's end that Helm puts after each document: a literal text that a file ends
// with has one. An empty document is no object: nil.
func toObject(template, document string) (*object, error) {
	asJSON, err := yaml.YAMLToJSON([]byte(document + "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", template, err)
	}
	switch {
	case string(asJSON) == "null":
		return nil, nil
	case asJSON[0] != '{':
		return nil, fmt.Errorf("%s: %w", template, errNoObject)
	case string(asJSON) == "{}":
		return nil, nil
	}
	return &object{Template: template, Hooks: []string{}, Object: asJSON}, nil
}
