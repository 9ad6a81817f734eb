//! A platform update at the customer's, with the built binaries on the real parts: what a person is told and asked, what is refused and why, and how
//! an approval holds and ends. Each file has a landscape of its own; two of them run side by side.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approve;
mod attributed;
mod changes;
mod checks;
mod consent;
mod interrupted;
mod least_secret;
mod others;
mod plan;
mod renewal;
mod reset;

use system_tests::bundle::{self, Release};
use system_tests::landscape::{ENVIRONMENT, Landscape};

/// A manifest, as handed over out of band.
fn file(landscape: &Landscape, name: &str, release: &Release) -> String {
    let manifest = release.manifest(ENVIRONMENT, "2026-11-30T10:00:00Z").to_string();
    landscape.connector.folder().write(format!("{name}.json"), manifest).unwrap().display().to_string()
}

/// The release with one file of a chart changed.
async fn with_changed_chart(landscape: &Landscape, release: &Release, name: &str, file: &str, change: impl Fn(&str) -> String) -> Release {
    let mut release = release.clone();
    let component = release.component(name);
    let chart = bundle::copy_chart(&component.chart.name, &component.chart.version, landscape.registry.folder()).unwrap();
    let path = chart.join("templates").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let new = change(&text);
    assert_ne!(new, text, "{file} has nothing to change");
    std::fs::write(&path, new).unwrap();
    component.chart = landscape.registry.push_chart(&chart, None).await.unwrap();
    release
}
