//! Finds the values of a chart that repair what it renders.
//!
//! ```text
//! finding ─▶ the values that its template reads ─▶ render with each ─▶ judge again ─▶ advice
//! ```

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path};

use check::Files;
use engine::model::object::ObjectRef;
use engine::policy::Action;
use report::{Located, Report};

/// The most times that a run renders a chart anew. A number of seconds would name other values on
/// a busy machine.
const MOST_TRIED: usize = 40;

/// The most bytes of a template that is read.
const MOST_BYTES: u64 = 1 << 20;

/// The number of lines below `strategy:` that may belong to it.
const BELOW: usize = 3;

/// The rules that find something about each object of a chart.
pub(super) type Rules = HashMap<ObjectRef, BTreeSet<&'static str>>;

/// Adds to each finding about an object of a chart the values that repair it, if the chart reads
/// such values. `judge` renders the chart in a folder with these settings, `key=value`, and judges
/// its objects; the values belong into `file`, or else into the chart's own file.
pub(super) fn add(
    report: &mut Report,
    files: &dyn Files,
    file: Option<&Path>,
    judge: impl Fn(&Path, &[String]) -> Option<Rules>,
) {
    let mut before = HashMap::new();
    let left_to_try = Cell::new(MOST_TRIED);
    let judge = |chart: &str, settings: &[String]| {
        left_to_try.set(left_to_try.get().checked_sub(1)?);
        judge(Path::new(chart), settings)
    };
    for located in &mut report.findings {
        let Some((chart, tried)) = candidates(located, files) else { continue };
        let chart_file = Path::new(&chart).join("values.yaml");
        let rules = before.entry(chart.clone()).or_insert_with(|| judge(&chart, &[]));
        let (rule, object) = (located.finding.rule, &located.finding.object);
        let Some(found) = rules.as_ref().and_then(|rules| rules.get(object)) else { continue };
        let repairs = |settings: &Vec<String>| {
            let after = judge(&chart, settings).and_then(|mut all| all.remove(object));
            after.is_some_and(|left| !left.contains(rule) && left.is_subset(found))
        };
        if !found.contains(rule) {
            continue;
        }
        let Some(working) = tried.iter().find(|settings| repairs(settings)) else { continue };
        let (settings, place) = (working.join(" and "), file.unwrap_or(&chart_file).display());
        located.finding.message += &format!(" In {place}, set {settings}.");
        let by_fix = located.by_fix.take().map_or_else(String::new, |text| format!("; {text}"));
        located.by_fix = Some(format!("in {place}, set {settings}{by_fix}"));
    }
}

/// The folder of the chart that renders the object, and the settings that may repair it.
fn candidates(located: &Located, files: &dyn Files) -> Option<(String, Vec<Vec<String>>)> {
    let recreates = |remedy: &str| remedy == "recreate";
    let mut remedies = located.finding.remedies.iter();
    if located.finding.action == Action::Ignore
        || !remedies.any(|proposal| recreates(proposal.remedy.name))
    {
        return None;
    }
    let place = located.place.as_ref()?;
    let chart = place.template.as_ref()?;
    let inner = Path::new(&place.file).strip_prefix(chart).ok()?;
    files.real(&Path::new(chart).join("Chart.yaml"))?;
    let real = files.real(Path::new(&place.file))?;
    let template = files.text(files.top(), &real, MOST_BYTES)?;
    let tried = settings(&template, &prefix(inner));
    Some((chart.clone(), tried))
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

/// The settings that may set the strategy of what the template renders, the simplest first.
fn settings(template: &str, prefix: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = template.lines().collect();
    let names_it = |text: &str| text.to_ascii_lowercase().contains("strategy");
    let mut keys = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let around = &lines[at.saturating_sub(BELOW)..lines.len().min(at + 2)];
        let is_near = around.iter().any(|text| names_it(text));
        for key in read(line).filter(|_| is_near) {
            if keys.iter().all(|(known, _)| *known != key) {
                let is_type = line.contains("type:") || key.to_ascii_lowercase().ends_with("type");
                keys.push((key, is_type));
            }
        }
    }
    // Names say more than places.
    keys.sort_by_key(|(key, _)| !names_it(key));
    keys.iter().flat_map(|(key, is_type)| of_key(&format!("{prefix}{key}"), *is_type)).collect()
}

/// The settings for a key that has the type of a strategy, or a whole strategy.
fn of_key(key: &str, is_type: bool) -> Vec<Vec<String>> {
    let setting = |name: &str| vec![format!("{name}=Recreate")];
    // Kubernetes refuses the block of a rolling update beside Recreate.
    let without_block = |name: &str, block: &str| {
        [setting(name), vec![format!("{block}.rollingUpdate=null")]].concat()
    };
    if is_type {
        let above = key.rsplit_once('.').map(|(above, _)| without_block(key, above));
        return std::iter::once(setting(key)).chain(above).collect();
    }
    let kind = format!("{key}.type");
    vec![setting(&kind), without_block(&kind, key), setting(key)]
}

/// The keys that a line of a template reads: `a.b` for `.Values.a.b`.
fn read(line: &str) -> impl Iterator<Item = &str> {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.split(".Values.").skip(1).filter_map(move |rest| {
        let end = rest.find(|c| !is_of_key(c)).unwrap_or(rest.len());
        let key = rest[..end].trim_end_matches('.');
        (!key.is_empty()).then_some(key)
    })
}
