//! Classes that charts create which were not rendered.
//!
//! A class that no manifest defines is assumed to attach its volumes, as most classes do. If the
//! values or the templates of a chart name the class, the repository defines it, but in a form that
//! is not read here; the class is then unknown.

use std::collections::HashSet;

use engine::model::Text as Name;
use engine::model::object::Object;
use engine::snapshot::Snapshot;
use engine::storage::likely_classes;
use manifest::objects::Item;

use super::reading::Reading;

/// The keys of values from which charts create classes: `storageClass: {name: fast}`,
/// `storageClasses: [{name: fast}]`.
const KEYS: [&str; 2] = ["storageclass", "storageclasses"];

/// The classes that are `named` and not defined by any object, but that are created by charts which
/// were not rendered, or from values in one of the texts.
pub(super) fn made_classes(named: &HashSet<&str>, read: &Reading, facts: &Snapshot) -> Vec<Name> {
    let mut unknown = named.clone();
    unknown
        .retain(|class| !class.is_empty() && facts.view().storage_class(class).found().is_none());
    for known in &read.objects {
        if let Object::StorageClass(class) = &known.object {
            unknown.remove(class.metadata.name.as_str());
        }
    }
    if unknown.is_empty() {
        return Vec::new();
    }
    let mut made: HashSet<String> = HashSet::new();
    for text in read.texts.iter().filter_map(|text| text.source.text().ok()) {
        made.extend(from_values(&text));
    }
    for chart in &read.unrendered_charts {
        let texts: Vec<_> = chart.iter().filter_map(|file| file.text().ok()).collect();
        if texts.iter().any(|text| text.contains("kind: StorageClass")) {
            made.extend(texts.iter().flat_map(|text| words(text)));
        }
    }
    unknown.retain(|class| made.contains(*class));
    unknown.into_iter().map(Into::into).collect()
}

/// Whether the object names the class of K3s, where it is the default class.
pub(super) fn names_local_path(known: &Item) -> bool {
    let mut likely = named_classes(known).into_iter().flat_map(likely_classes);
    likely.any(|class| class.driver() == LOCAL_PATH)
}

const LOCAL_PATH: &str = "rancher.io/local-path";

/// The classes that a claim or the claim templates of a workload name.
pub(super) fn named_classes(known: &Item) -> Vec<&str> {
    match &known.object {
        Object::Claim(claim) => claim.class().into_iter().collect(),
        Object::Workload(workload) => {
            let ephemeral = workload.ephemeral_claims().map(|(_, template)| template);
            let templates = workload.claim_templates.iter().chain(ephemeral);
            templates.filter_map(|template| template.class()).collect()
        }
        _ => Vec::new(),
    }
}

/// The names under keys of values from which charts create classes. The lines are read without a
/// parser, because values may also be strings in other documents.
fn from_values(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    // The indentation of the key that contains the following lines.
    let mut key: Option<usize> = None;
    for line in text.lines() {
        let entry = line.trim_start();
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        let indent = line.len() - entry.len();
        key = key.filter(|&key| indent > key || indent == key && entry.starts_with("- "));
        let entry = entry.trim_start_matches("- ");
        let Some((name, value)) = entry.split_once(':') else {
            continue;
        };
        let is_key = KEYS.iter().any(|key_end| name.to_ascii_lowercase().ends_with(key_end));
        let value = value.trim();
        if is_key && (value.is_empty() || value.starts_with(['#', '&'])) {
            key = key.or(Some(line.len() - entry.len()));
        } else if is_key && value.starts_with(['{', '[']) {
            let inner = value.split(['{', '[', ',', '}', ']']);
            names.extend(inner.filter_map(|field| word(field.trim().strip_prefix("name:")?)));
        } else if key.is_some() && name == "name" {
            names.extend(word(value));
        }
    }
    names
}

/// The values at the ends of the lines.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("- ");
        word(line.split_once(": ").map_or(line, |(_, value)| value))
    })
}

fn word(value: &str) -> Option<String> {
    let value = value.split(" #").next()?.trim().trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains(char::is_whitespace)).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_which_a_class_is_made_name_it() {
        let table: [(&str, &[&str]); 9] = [
            ("storageClass:\n  create: true\n  name: fast\n", &["fast"]),
            (
                "storageClasses:\n- name: fast\n  parameters: {}\n- name: 'slow' # for backups\n",
                &["fast", "slow"],
            ),
            ("values:\n  storageClass: {create: true, name: fast}\n  name: web\n", &["fast"]),
            ("storageClasses: [{name: fast}, {name: slow}]\n", &["fast", "slow"]),
            (
                "cephBlockPools:\n  - name: pool\n    storageClass:\n      enabled: true\n      name: fast\n  - name: other\n",
                &["fast"],
            ),
            (
                "helm:\n  values: |\n    storageClass:\n      # the fast one\n      name: fast\n    name: web\n",
                &["fast"],
            ),
            ("persistence:\n  storageClass: fast\n  name: web\n", &[]),
            ("storageClassName: fast\nname: web\n", &[]),
            ("storageClass:\nname: web\n", &[]),
        ];
        for (text, names) in table {
            assert_eq!(from_values(text), names, "{text}");
        }
    }
}
