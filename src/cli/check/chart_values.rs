//! Finds the values of a chart that repair what it renders.
//!
//! ```text
//! finding ─▶ the values that may decide ─▶ render with each ─▶ judge again ─▶ advice
//! ```

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

use check::{Files, Parsed, Rules, parse};
use engine::policy::Action;
use engine::verdict::EffectivePolicy;
use jiff::Timestamp;
use render::{Input, Kustomizations, Paths, RenderOptions, Repository};
use report::{Located, Report};
use serde_json::{Value, json};

/// The most times that a run renders a chart anew. A number of seconds would name other values on
/// a busy machine.
const MOST_TRIED: usize = 40;

/// The most bytes of a template that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The number of lines below `strategy:` that may belong to it.
const BELOW: usize = 3;

/// Values of a chart: keys, as for `helm --set`, each with its text. `null` removes a key.
type Settings = Vec<(String, &'static str)>;

/// Everything that a chart is rendered and judged from.
pub(super) struct Charts<'a> {
    input: Input<'a>,
    paths: &'a Paths<'a>,
    parsed: Parsed,
    effective: &'a EffectivePolicy,
    left_to_try: usize,
}

/// What renders an object.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Chart {
    /// The chart in this folder, without a release.
    Alone(String),
    /// The release whose output is the text with this number.
    Released(usize),
}

/// Adds to each finding about an object of a chart the values that repair it, if the chart reads
/// such values.
pub(super) fn add(report: &mut Report, mut charts: Charts<'_>) {
    let mut before = HashMap::new();
    for located in &mut report.findings {
        let Some((chart, place, tried)) = charts.candidates(located) else { continue };
        let rules =
            before.entry(chart.clone()).or_insert_with(|| charts.rules(&chart, &Vec::new()));
        let (rule, object) = (located.finding.rule, &located.finding.object);
        let Some(found) = rules.as_ref().and_then(|rules| rules.get(object)) else { continue };
        let mut repairs = |settings: &&Settings| {
            let after = charts.rules(&chart, settings).and_then(|mut all| all.remove(object));
            after.is_some_and(|left| !left.contains(rule) && left.is_subset(found))
        };
        if !found.contains(rule) {
            continue;
        }
        let Some(working) = tried.iter().find(|settings| repairs(settings)) else { continue };
        let settings = pairs(working).join(" and ");
        located.finding.message += &format!(" In {place}, set {settings}.");
        let by_fix = located.by_fix.take().map_or_else(String::new, |text| format!("; {text}"));
        located.by_fix = Some(format!("in {place}, set {settings}{by_fix}"));
    }
}

impl<'a> Charts<'a> {
    pub(super) const fn of(
        input: Input<'a>,
        paths: &'a Paths<'a>,
        parsed: Parsed,
        effective: &'a EffectivePolicy,
    ) -> Self {
        Self { input, paths, parsed, effective, left_to_try: MOST_TRIED }
    }

    /// What renders the object of a finding, the place of its values, as words, and the settings
    /// that may repair the finding.
    fn candidates(&self, located: &Located) -> Option<(Chart, String, Vec<Settings>)> {
        let mut remedies = located.finding.remedies.iter();
        if self.left_to_try == 0
            || located.finding.action == Action::Ignore
            || !remedies.any(|proposal| proposal.remedy.name == "recreate")
        {
            return None;
        }
        let place = located.place.as_ref()?;
        let chart = place.template.as_ref()?;
        if let Some((number, place)) = self.parsed.release_of(&located.finding.object, place) {
            // The release's own keys come first.
            let values = self.paths.values_of_release(number);
            let keys = values.iter().rev().flat_map(|values| keys_in(values, "")).collect();
            return Some((Chart::Released(number), place, settings(keys)));
        }
        let files: &Repository = self.input.repository;
        let inner = Path::new(&place.file).strip_prefix(chart).ok()?;
        files.real(&Path::new(chart).join("Chart.yaml"))?;
        let real = files.real(Path::new(&place.file))?;
        let template = files.text(files.top(), &real, MOST_BYTES)?;
        let chart_file = Path::new(chart).join("values.yaml");
        let file = self.input.render.values.last().unwrap_or(&chart_file).display().to_string();
        let keys = keys_of_template(&template, &prefix(inner));
        Some((Chart::Alone(chart.clone()), file, settings(keys)))
    }

    /// The rules that find something about each object of the chart, if it is rendered with these
    /// settings in addition; `None` if it cannot be rendered.
    fn rules(&mut self, chart: &Chart, settings: &Settings) -> Option<Rules> {
        let files = self.input.repository;
        self.left_to_try = self.left_to_try.checked_sub(1)?;
        match chart {
            Chart::Alone(folder) => {
                let set = [&*self.input.render.set, &pairs(settings)].concat();
                let render = RenderOptions { set, verbose: false, ..self.input.render.clone() };
                let paths = [folder.into()];
                let input = Input { paths: &paths, render: &render, say: |_| (), ..self.input };
                let reading = Paths::find(input).read(Kustomizations::Rendered).ok()?;
                let facts = std::mem::take(&mut self.parsed.facts);
                let alone = parse(reading, facts, Timestamp::now());
                let rules = alone.rules(None, self.effective, files);
                self.parsed.facts = alone.facts;
                Some(rules)
            }
            Chart::Released(number) if settings.is_empty() => {
                Some(self.parsed.rules(Some(*number), self.effective, files))
            }
            Chart::Released(number) => {
                let output = self.paths.release_with(*number, mapping(settings))?;
                Some(self.parsed.rules_with(*number, output, self.effective, files))
            }
        }
    }
}

/// The settings as `key=value`.
fn pairs(settings: &Settings) -> Vec<String> {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// The settings as a mapping of values.
fn mapping(settings: &Settings) -> Value {
    let mut values = json!({});
    for (key, text) in settings {
        let place = key.split('.').fold(&mut values, |place, key| &mut place[key]);
        *place = if *text == "null" { Value::Null } else { json!(text) };
    }
    values
}

/// The keys in the values whose names speak of a strategy, and whether each is its type.
fn keys_in(values: &Value, above: &str) -> Vec<(String, bool)> {
    let Value::Object(entries) = values else { return Vec::new() };
    let is_plain = |key: &&String| key.chars().all(is_of_name);
    entries
        .iter()
        .filter(|(key, _)| is_plain(key))
        .flat_map(|(key, value)| {
            let path = format!("{above}{key}");
            match value {
                _ if !names_strategy(key) => keys_in(value, &format!("{path}.")),
                Value::Object(_) | Value::Null => vec![(path, false)],
                Value::String(_) => vec![(path, true)],
                _ => Vec::new(),
            }
        })
        .collect()
}
/// The keys under which a chart has the values of a chart in it: `db.` for `charts/db/…`.
fn prefix(inner: &Path) -> String {
    let mut parts = inner.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let mut prefix = String::new();
    while let (Some("charts"), Some(name)) = (parts.next(), parts.next()) {
        prefix = format!("{prefix}{name}.");
    }
    prefix
}

/// The keys that may set the strategy of what the template renders, and whether each is its type.
fn keys_of_template(template: &str, prefix: &str) -> Vec<(String, bool)> {
    let lines: Vec<&str> = template.lines().collect();
    let mut keys = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let around = &lines[at.saturating_sub(BELOW)..lines.len().min(at + 2)];
        let is_near = around.iter().any(|text| names_strategy(text));
        for key in read(line).filter(|_| is_near) {
            let is_type = line.contains("type:") || key.to_ascii_lowercase().ends_with("type");
            keys.push((format!("{prefix}{key}"), is_type));
        }
    }
    // Names say more than places.
    keys.sort_by_key(|(key, _)| !names_strategy(key));
    keys
}

fn names_strategy(text: &str) -> bool {
    text.to_ascii_lowercase().contains("strategy")
}

/// The settings to try, the first of each key first.
fn settings(keys: Vec<(String, bool)>) -> Vec<Settings> {
    let mut known = HashSet::new();
    let new = keys.into_iter().filter(|(key, _)| known.insert(key.clone()));
    new.flat_map(|(key, is_type)| of_key(key, is_type)).collect()
}

/// The settings for a key that has the type of a strategy, or a whole strategy.
fn of_key(key: String, is_type: bool) -> Vec<Settings> {
    let recreate = |name: String| vec![(name, "Recreate")];
    // Kubernetes refuses the block of a rolling update beside Recreate.
    let without_block = |name: String, block: &str| {
        vec![(name, "Recreate"), (format!("{block}.rollingUpdate"), "null")]
    };
    if is_type {
        let above = key.rsplit_once('.').map(|(above, _)| without_block(key.clone(), above));
        return std::iter::once(recreate(key)).chain(above).collect();
    }
    let kind = format!("{key}.type");
    vec![recreate(kind.clone()), without_block(kind, &key), recreate(key)]
}

/// The keys that a line of a template reads: `a.b` for `.Values.a.b`.
fn read(line: &str) -> impl Iterator<Item = &str> {
    line.split(".Values.").skip(1).filter_map(move |rest| {
        let end = rest.find(|c| !is_of_name(c) && c != '.').unwrap_or(rest.len());
        let key = rest[..end].trim_end_matches('.');
        (!key.is_empty()).then_some(key)
    })
}

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
