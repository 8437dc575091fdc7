//! The bytes of a manifest, processed as by `check --fix`: read, judged, edited, read again.

use engine::model::object::Object;
use engine::model::workload::WorkloadKind;
use engine::policy::{Policy, RemedyChoice};
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use engine::verdict::{Document, EffectivePolicy, Finding, Mode, Review, Verdict, evaluate};
use json_patch::Patch;
use manifest::edit::apply_each;
use manifest::find::{Exclude, find};
use manifest::kustomization::Kustomization;
use manifest::objects::{Item, Objects, read_objects};
use manifest::source::Source;
use manifest::split::{Part, parts};
use manifest::tree::Tree;
use serde_json::{Value, json};

use std::sync::LazyLock;

static POLICY: LazyLock<EffectivePolicy> = LazyLock::new(|| {
    let catalog = Catalog::embedded().expect("the catalog can be read");
    EffectivePolicy::new(Policy::default(), catalog)
});

/// Patches that fit any Deployment, so that edits are also tried on objects without faults.
static PATCHES: LazyLock<Vec<Patch>> = LazyLock::new(|| {
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}]}});
    let zero_surge =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    [
        ("/spec/strategy", json!({"type": "Recreate"})),
        ("/spec/strategy", zero_surge),
        ("/spec/template/spec/affinity", affinity),
    ]
    .map(|(path, value)| {
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        serde_json::from_value(patch).expect("it is a patch")
    })
    .to_vec()
});

struct ManifestDocument(Value);

impl Document for ManifestDocument {
    fn object(&self) -> Option<&Value> {
        Some(&self.0)
    }

    fn changes_template(&self) -> bool {
        true
    }
}

/// Each object is found again at its recorded place. An edit changes only the requested fields,
/// also according to another YAML reader. A repaired object needs no further repair.
pub fn run(bytes: &[u8]) {
    let found = find(&["-".into()], &Exclude::nothing(), &mut &*bytes);
    for error in &found.errors {
        assert!(error.to_string().ends_with(['.', '?']), "{error}");
    }
    let Some(source) = found.sources.first() else {
        return;
    };
    let text = source.text().expect("it was text a moment ago");
    let is_utf16 = [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|mark| bytes.starts_with(mark));
    if !is_utf16 {
        assert_eq!(text.as_bytes(), bytes);
    }
    let _ = Kustomization::read(&text);
    let objects = read_objects(&found.sources, true);
    for error in &objects.errors {
        let sentence = error.to_string();
        assert!(sentence.ends_with('.'), "{sentence}");
        let lines = text.split('\n').count();
        assert!(error.at.is_none_or(|(line, _)| (1..=lines).contains(&line)), "{sentence}");
    }
    let cluster = cluster_of(&objects);
    let parts = parts(&text);
    // Each edit processes the whole document, so only the first objects of a long list are edited.
    for item in objects.items.iter().take(4) {
        let part = &parts[item.place.part];
        for note in &item.notes {
            assert!(text.get(note.spot.start..note.spot.end).is_some(), "{}", note.text);
        }
        let mut patches = Vec::new();
        for mode in [
            Mode::Propose,
            Mode::Repair { remedy: None },
            Mode::Repair { remedy: Some(RemedyChoice::Colocate) },
        ] {
            let verdict = verdict(item, &cluster, mode);
            for finding in &verdict.findings {
                placed(&text, item, finding);
                patches.extend(finding.remedies.iter().map(|proposal| proposal.patch.clone()));
            }
            if let Some(patch) = verdict.patch {
                repaired(source, part, item, &patch, mode);
                patches.push(patch);
            }
        }
        if matches!(item.object, Object::Workload(_)) {
            patches.extend_from_slice(&PATCHES);
        }
        for patch in patches {
            edited(part, &item.place.items, &patch);
        }
    }
}

/// A cluster of the objects that were read, as `audit` would see it.
fn cluster_of(objects: &Objects) -> Snapshot {
    let mut cluster = Snapshot::complete();
    for item in &objects.items {
        if !item.reference.name.is_empty() {
            cluster.apply(item.object.clone());
        }
    }
    cluster
}

fn verdict(item: &Item, cluster: &Snapshot, mode: Mode) -> Verdict {
    let scaled = matches!(item.object, Object::Scale(_)).then_some(WorkloadKind::Deployment);
    let review = Review {
        object: &item.object,
        old: None,
        reference: &item.reference,
        scaled,
        document: &ManifestDocument(item.outline.document()),
        mode,
    };
    evaluate(&review, cluster.view(), &POLICY)
}

/// Checks that a finding has a place in the file.
fn placed(text: &str, item: &Item, finding: &Finding) {
    assert!(!finding.warning().contains(char::is_control), "{:?}", finding.warning());
    let outline = &item.outline;
    let spot = outline.locate(&outline.document(), &finding.field_path);
    assert!(text.get(spot.start..spot.end).is_some(), "{}: {spot:?}", finding.field_path);
}

/// Edits the document, if possible, and checks the edit. Returns the new text.
fn edited(part: &Part<'_>, items: &[usize], patch: &Patch) -> Option<String> {
    let (edited, came_of) = apply_each(part.text, &[(items, patch)]);
    if let [Err(refusal)] = &*came_of {
        assert_eq!(edited, part.text, "refused, and changed all the same: {refusal}");
        assert!(refusal.to_string().ends_with('.'), "{refusal}");
        return None;
    }
    let (before, after) = (ours(part.text), ours(&edited));
    let (Some(before), Some(after)) = (before, after) else {
        panic!("what was edited can be read\n{edited}");
    };
    let mut wanted = before.clone();
    let object = items.iter().fold(&mut wanted, |value, number| &mut value["items"][number]);
    json_patch::patch(object, patch).expect("the patch fits");
    assert_eq!(after, wanted, "{edited}");

    // If the other reader understands the document as we do, it must also understand the edit as we
    // do.
    if theirs(part.text).is_some_and(|theirs| theirs == plain(&before)) {
        assert_eq!(theirs(&edited), Some(plain(&wanted)), "{}\n---\n{edited}", part.text);
    }
    let (again, results) = apply_each(&edited, &[(items, patch)]);
    assert!(results.iter().all(Result::is_ok), "{results:?}\n{edited}");
    assert_eq!(again, edited, "a second pass changes something");
    Some(edited)
}

/// Checks that the repaired text is read as the same object and needs no further repair.
fn repaired(source: &Source, part: &Part<'_>, item: &Item, patch: &Patch, mode: Mode) {
    let Some(edited) = edited(part, &item.place.items, patch) else {
        return;
    };
    let text = source.text().expect("it was text a moment ago");
    let end = part.start + part.text.len();
    let whole = format!("{}{edited}{}", &text[..part.start], &text[end..]);
    let objects = read_objects(&[Source::in_memory("-", whole.clone())], true);
    let again = objects
        .items
        .iter()
        .find(|again| again.place == item.place)
        .unwrap_or_else(|| panic!("the object is gone\n{whole}"));
    let verdict = verdict(again, &cluster_of(&objects), mode);
    assert!(verdict.patch.is_none(), "a second repair: {:?}\n{whole}", verdict.patch);
}

fn ours(text: &str) -> Option<Value> {
    let tree = Tree::parse(text).ok()??;
    Some(tree.value(tree.root()))
}

/// The document as libyaml reads it. The reader of Kubernetes is modelled on libyaml too.
fn theirs(text: &str) -> Option<Value> {
    let mut value: serde_norway::Value = serde_norway::from_str(text).ok()?;
    value.apply_merge().ok()?;
    serde_json::to_value(value).ok().map(|value| plain(&value))
}

/// The value with all numbers as floating-point numbers, because the readers differ in which
/// numbers they keep as integers.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(key, entry)| (key.clone(), plain(entry))).collect()
        }
        other => other.clone(),
    }
}
