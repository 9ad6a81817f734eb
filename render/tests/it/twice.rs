//! Two renderings by one child: the second is what a child of its own would make of it, told in full only where it is another.

use render::EngineError;
use render::engine::{Answer, Invention, Second};
use serde_json::{Value, json};

use crate::engine::answer;
use crate::support::{archive, capabilities, chart, engine};

fn pair() -> [Invention; 2] {
    Invention::pair("2026-11-30T10:00:00Z".parse().unwrap())
}

async fn ask(archive: &[u8], values: &Value, inventions: &[Invention]) -> Result<Answer, EngineError> {
    answer(&engine().await, archive, values.clone(), inventions, &capabilities()).await
}

/// One ConfigMap: what these expressions make, in order.
fn printing(name: &str, expressions: &[&str]) -> String {
    let line = |(n, expression): (usize, &&str)| format!("  v{n}: {{{{ {expression} | toString | quote }}}}\n");
    let lines: String = expressions.iter().enumerate().map(line).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n{lines}")
}

/// Writes into all that a template can write into, and shows what was there before.
const WRITES: &[&str] = &[
    "cat .Values.given (set .Values \"given\" \"written\" | len)",
    "cat .Values.deep.given.x (set .Values.deep.given \"x\" \"written\" | len)",
    "cat .Values.own.x (set .Values.own \"x\" \"written\" | len)",
    "cat .Values.list (set (index .Values.list 0) \"a\" \"written\" | len)",
    "cat (hasKey .Values \"goes\") (unset .Values \"goes\" | len)",
    "cat .Values.merged (mergeOverwrite .Values.merged (dict \"x\" \"written\") | len)",
    "cat .Values.global.x (set .Values.global \"x\" \"written\" | len)",
    "cat .Values.sub.x (set .Values.sub \"x\" \"written\" | len)",
    "cat (hasKey . \"new\") (set . \"new\" \"written\" | len)",
    "cat .Release.Service (set .Release \"Service\" \"written\" | len)",
    "cat (join \",\" .Chart.Keywords) (sortAlpha .Chart.Keywords | len)",
    "cat (hasKey .Chart \"new\") (set .Chart \"new\" \"written\" | len)",
    "cat (join \",\" .Capabilities.APIVersions) (sortAlpha .Capabilities.APIVersions | len)",
    "tpl \"{{ define \\\"d\\\" }}written{{ end }}{{ include \\\"d\\\" . }}\" .",
    "include \"d\" .",
];

fn writing() -> Vec<u8> {
    let templates = [printing("x", WRITES), printing("s", &["cat .Values.x .Values.global.x (set .Values \"x\" \"written\" | len)"])];
    let sub = chart("sub", &[("values.yaml", "x: one\n"), ("templates/s.yaml", &templates[1])]);
    let files: Vec<(&str, &[u8])> = vec![
        ("Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\nkeywords: [b, a]\n"),
        ("values.yaml", b"own: {x: one}\ngoes: one\nmerged: {x: one}\nglobal: {x: one}\nsub: {x: two}\n"),
        ("templates/_d.tpl", b"{{ define \"d\" }}one{{ end }}"),
        ("templates/x.yaml", templates[0].as_bytes()),
        ("charts/sub-1.0.0.tgz", &sub),
    ];
    archive("c", &files)
}

#[tokio::test]
async fn the_second_finds_nothing_of_the_first() {
    let values = json!({"given": "one", "deep": {"given": {"x": "one"}}, "list": [{"a": "one"}]});
    let twice = ask(&writing(), &values, &pair()).await.unwrap();
    let shown: Vec<&str> = twice.first.objects.iter().map(|object| object.object["data"]["v0"].as_str().unwrap()).collect();
    assert_eq!(shown, ["two one 2", "one 8"]);
    assert_eq!(twice.second, Some(Second::Same));
}

#[tokio::test]
async fn each_is_what_a_child_of_its_own_makes() {
    let made_up = ["randAlphaNum 8", "now", "uuidv4", "(genCA \"ca\" 10).Cert", "shuffle \"abcd\"", "randInt 0 1000"];
    let random = chart("c", &[("templates/x.yaml", &printing("x", &made_up)), ("templates/y.yaml", &printing("y", &["1"]))]);
    let [one, two] = pair();
    let twice = ask(&random, &json!({}), &[one, two]).await.unwrap();
    let Some(Second::Other(second)) = twice.second else { panic!("{:?}", twice.second) };
    for (invention, output) in [(one, &twice.first), (two, &second)] {
        assert_eq!(ask(&random, &json!({}), &[invention]).await.unwrap(), Answer { first: output.clone(), second: None });
    }
    let swapped = ask(&random, &json!({}), &[two, one]).await.unwrap();
    assert_eq!((swapped.first, swapped.second), (second, Some(Second::Other(twice.first))));
}

/// Some byte is another, though it be one that counts for nothing: whether it does is not the child's to say.
#[tokio::test]
async fn one_that_differs_anywhere_is_told_in_full() {
    let hook = "apiVersion: v1\nkind: Pod\nmetadata: {name: 't-{{ randNumeric 4 }}', annotations: {helm.sh/hook: test}}\n";
    let branch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n{{ if eq (randInt 0 2) 0 }}{{ $_ := uuidv4 }}{{ end }}\n";
    for template in [hook, branch] {
        let twice = ask(&chart("c", &[("templates/x.yaml", template)]), &json!({}), &pair()).await.unwrap();
        assert!(matches!(&twice.second, Some(Second::Other(second)) if second.objects.len() == 1), "{template}: {:?}", twice.second);
    }
}

/// What ends only the second rendering ends both: as it is with two children.
#[tokio::test]
async fn a_second_that_fails_or_is_too_large_is_refused() {
    for (then, expected) in [
        ("fail \"in time\"", "in time"),
        ("until 2000000000", "more than 1536 MiB of memory"),
        ("range until 30 }}{{ printf \"---\\nkind: A\\na: %s\\n\" (repeat 900000 \"x\") }}{{ end", "renders to more than 16 MiB"),
    ] {
        let template = format!("{{{{ if gt (now | date \"2006\" | int) 2030 }}}}{{{{ {then} }}}}{{{{ end }}}}");
        let later = chart("c", &[("templates/x.yaml", &template)]);
        let text = ask(&later, &json!({}), &pair()).await.unwrap_err().to_string();
        assert!(text.contains(expected), "{template}: {text}");
        assert_eq!(ask(&later, &json!({}), &pair()[..1]).await.unwrap().first.objects, []);
    }
}

#[tokio::test]
async fn two_large_renderings_are_read_and_compared() {
    let large =
        "{{ $one := randAlpha 1 }}{{ range until 12 }}{{ printf \"---\\nkind: A\\na: %s%s\\n\" $one (repeat 1000000 \"x\") }}{{ end }}";
    let twice = ask(&chart("c", &[("templates/x.yaml", large)]), &json!({}), &pair()).await.unwrap();
    assert!(matches!(&twice.second, Some(Second::Other(second)) if second.objects.len() == 12));
}
