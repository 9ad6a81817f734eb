//! Charts that nobody wrote: random trees as defaults and as the release's values over them, printed in the ways that charts print values.
//!
//! A chart has many templates, so that one helm renders many of them. `SEED` is the first chart's, `RUNS` their number.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};
use system_tests::chart_case::Case;

use crate::corpus::differences;

/// Charts in a run of all tests.
const RUNS: u64 = 8;
/// Templates of a chart.
const TEMPLATES: usize = 40;
/// Deepest tree.
const DEPTH: usize = 4;

/// Texts that YAML, JSON or a template might take for something else.
const TEXTS: [&str; 48] = [
    "",
    " ",
    "a",
    "yes",
    "No",
    "null",
    "~",
    "true",
    "1",
    "0644",
    "0o17",
    "1e3",
    "1_000",
    "1:30",
    ".inf",
    "-",
    "- a",
    "a: b",
    "a #b",
    "#",
    "---",
    "...",
    "%a",
    "@a",
    "`a`",
    "!a",
    "&a",
    "*a",
    "?",
    "|",
    ">",
    "{a}",
    "[a]",
    "'",
    "\"",
    "it's",
    "\\n",
    "a\nb",
    "a\nb\n",
    "\na",
    "  a\n b\n\n",
    "a\r\nb",
    "tab\tin",
    "end ",
    "{{ .Release.Name }}",
    "grüße 世界 🎉",
    "\u{85}\u{2028}\u{feff}",
    "=",
];
const KEYS: [&str; 13] = ["a", "b", "c", "d", "e", "yes", "1", "null", "x.y/z", "with space", "ключ", "-", "a: b"];

/// Ways to print a value into `out:` of an object, for `VALUE`.
const FORMS: [&str; 22] = [
    "{{ toYaml VALUE | nindent 2 }}",
    "{{ toJson VALUE }}",
    "{{ toRawJson VALUE }}",
    "{{ toPrettyJson VALUE | nindent 2 }}",
    "{{ VALUE | toString | toJson }}",
    "{{ quote VALUE }}",
    "{{ printf \"%v %T\" VALUE VALUE | toJson }}",
    "{{ toYaml VALUE | quote }}",
    "{{ if kindIs \"map\" VALUE }}{{ toToml VALUE | quote }}{{ end }}",
    "{{ toYaml VALUE | b64enc }}",
    "{{ fromYaml (toYaml VALUE) | toJson }}",
    "{{ fromJson (toJson VALUE) | toYaml | nindent 2 }}",
    "{{ with VALUE }}{{ toJson . }}{{ else }}nothing{{ end }}",
    "{{ if VALUE }}{{ kindOf VALUE }}{{ else }}empty{{ end }}",
    "{{ VALUE | default \"default\" | toJson }}",
    "[{{ if kindIs \"map\" VALUE }}{{ range $k, $v := VALUE }}{{ toJson $k }}, {{ toJson $v }}, {{ end }}{{ end }}]",
    "[{{ if kindIs \"slice\" VALUE }}{{ range $i, $v := VALUE }}{{ $i }}, {{ toJson $v }}, {{ else }}none{{ end }}{{ end }}]",
    "{{ if kindIs \"map\" VALUE }}{{ range $k, $v := VALUE }}{{ printf \"%s: %s\" (toJson $k) (toJson $v) | nindent 2 }}{{ end }}{{ end }}",
    "{{ list VALUE VALUE | toYaml | nindent 2 }}",
    "{{ dict \"k\" (deepCopy (dict \"v\" VALUE)) | toYaml | nindent 2 }}",
    "{{ VALUE | toString | upper | trunc 20 | toJson }}",
    "{{ sha256sum (toJson VALUE) }}",
];

#[tokio::test]
async fn generated_charts_render_as_helm_renders_them() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, runs) = (number("SEED").unwrap_or(1), number("RUNS").unwrap_or(RUNS));
    let cases: Vec<Case> = (first..first + runs).map(chart).collect();
    let differences = differences(&cases).await;
    println!("{} templates in {runs} charts, {} charts differ", TEMPLATES * cases.len(), differences.len());
    assert!(differences.is_empty(), "\n{}\nplay one again with SEED=<its seed> RUNS=1", differences.join("\n"));
}

fn chart(seed: u64) -> Case {
    let mut chance = Chance(seed);
    let (mut defaults, mut values, mut templates) = (Map::new(), Map::new(), String::new());
    for i in 0..TEMPLATES {
        defaults.insert(format!("v{i}"), chance.tree(0));
        if chance.below(2) == 0 {
            values.insert(format!("v{i}"), chance.tree(0));
        }
        let form = FORMS[chance.below(FORMS.len())].replace("VALUE", &format!(".Values.v{i}"));
        let _ = write!(templates, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: t{i}}}\nout: {form}\n");
    }
    Case::of(&format!("seed {seed}"), &templates, &ascii(&Value::Object(defaults)), values)
}

/// JSON in ASCII: YAML reads it as JSON does, where it takes some characters for the ends of lines otherwise.
pub(crate) fn ascii(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match u32::from(c) {
            0x7f..=0xffff => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out
}

/// A generator of numbers (splitmix64): a seed is a chart.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    fn tree(&mut self, depth: usize) -> Value {
        match self.below(if depth < DEPTH { 11 } else { 7 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => self.int().into(),
            3 => Number::from_f64(self.float()).map_or(Value::Null, Value::Number),
            4..=6 => self.text().into(),
            7 => (0..self.below(4)).map(|_| self.tree(depth + 1)).collect(),
            _ => Value::Object((0..self.below(5)).map(|_| (self.key(), self.tree(depth + 1))).collect()),
        }
    }

    fn int(&mut self) -> i64 {
        let bits = self.next().cast_signed();
        bits >> self.below(64)
    }

    fn float(&mut self) -> f64 {
        let exponent = i32::try_from(self.below(60)).unwrap() - 30;
        #[expect(clippy::cast_precision_loss, reason = "any number will do")]
        let digits = self.int() as f64;
        digits * 10_f64.powi(exponent)
    }

    fn text(&mut self) -> String {
        (0..=self.below(3)).map(|_| TEXTS[self.below(TEXTS.len())]).collect()
    }

    fn key(&mut self) -> String {
        KEYS[self.below(KEYS.len())].to_owned()
    }
}
