//! Charts that want more than a rendering: each ends within its bound, with one line that says why.

use std::net::TcpListener;

use futures::{StreamExt as _, stream};
use render::engine::EngineOutput;
use render::{Engine, EngineError};
use serde_json::json;

use crate::engine::render;
use crate::support::chart;

const SIDE_BY_SIDE: usize = 2;

async fn rendered(files: &[(&str, &str)]) -> Result<EngineOutput, EngineError> {
    render(&chart("c", files), json!({}), 0).await
}

async fn refused(template: &str) -> String {
    let error = match rendered(&[("templates/x.yaml", template)]).await {
        Ok(output) => panic!("{template}: it rendered {} objects", output.objects.len()),
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 2_100, "{template}: {text}");
    text
}

#[tokio::test]
async fn what_never_ends_is_ended() {
    let table = [
        // Depth.
        (r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#, "rendering template has a nested reference name: a"),
        (r#"{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}"#, "exceeded maximum template depth"),
        (r#"{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}"#, "the chart was stopped"),
        (r#"a: {{ repeat 20000 "[" }}"#, "exceeded max depth"),
        // Memory.
        ("{{ range until 2000000000 }}{{ end }}", "more than 1536 MiB of memory"),
        (r#"{{ $x := "x" }}{{ range until 60 }}{{ $x = cat $x $x }}{{ end }}"#, "more than 1536 MiB of memory"),
        (r#"{{ range until 2000 }}{{ repeat 1000000 "x" }}{{ end }}"#, "more than 1536 MiB of memory"),
        (r#"a: {{ repeat 9000000000000000000 "xx" }}"#, "strings: Repeat output length overflow"),
        // Processor time.
        ("{{ range 9223372036854775807 }}{{ end }}", "more than 20 s of processor time"),
        // What comes out.
        (r#"{{ range until 30 }}{{ printf "---\nkind: A\na: %s\n" (repeat 900000 "x") }}{{ end }}"#, "renders to more than 16 MiB"),
        (r#"a: {{ repeat 1100000 "x" }}"#, "c/templates/x.yaml: an object of 1100"),
    ];
    let refusals = table.map(|(template, expected)| async move { (template, expected, refused(template).await) });
    let refusals: Vec<_> = stream::iter(refusals).buffered(SIDE_BY_SIDE).collect().await;
    for (template, expected, text) in refusals {
        assert!(text.contains(expected), "{template}: {text}");
    }
}

/// A chart's own words and a parser's complaint may be as long as they like: what is shown has an end.
#[tokio::test]
async fn a_long_complaint_is_cut() {
    assert!(refused(r#"{{ fail (repeat 100000 "so long ") }}"#).await.contains("so long so long"));
}

/// The schema of a chart may name files and addresses. Nothing is opened.
#[tokio::test]
async fn a_schema_leads_nowhere() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let mut table = vec![format!("http://{address}/schema.json"), format!("https://{address}/schema.json")];
    if Engine::landlock() {
        table.push("file:///etc/passwd".to_owned());
    }
    for reference in table {
        let schema = json!({"$ref": reference}).to_string();
        let text = rendered(&[("values.schema.json", &schema)]).await.unwrap_err().to_string();
        assert!(text.contains(&reference) && text.contains("not permitted") | text.contains("permission denied"), "{text}");
        assert!(!text.contains('\n') && !text.contains("root:"), "{text}");
    }
    let asked = listener.accept().map_err(|error| error.kind());
    assert!(matches!(asked, Err(std::io::ErrorKind::WouldBlock)), "{asked:?}");
}

/// What a chart prints is never held whole.
#[tokio::test]
async fn the_parent_stays_small() {
    let peak = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    };
    let before = peak();
    let text = refused(r#"{{ range until 900 }}{{ printf "---\nkind: A\na: %s\n" (repeat 900000 "x") }}{{ end }}"#).await;
    assert!(text.contains("renders to more than") || text.contains("of memory"), "{text}");
    assert!(peak() < before + 200, "{} MiB, {before} MiB before", peak());
}
