//! Runs the engine on configurations.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use engine::model::Text;
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::policy::Policy;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use engine::verdict::{Document, EffectivePolicy, Mode, Review, Verdict, evaluate};
use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::configuration::{Configuration, Volume};
use crate::manifests::{self, NAMESPACE, Style};

static SETTINGS: LazyLock<EffectivePolicy> =
    LazyLock::new(|| EffectivePolicy::new(Policy::default(), Catalog::embedded().unwrap()));

/// Judges configurations one after another and keeps their clusters.
#[derive(Default)]
pub(crate) struct Engine {
    clusters: HashMap<(Vec<u8>, Volume), Snapshot>,
    /// The configuration that was written last, with its documents, because writing takes longer
    /// than judging.
    written: Option<(Configuration, Rc<[WorkloadDocument]>)>,
}

/// A workload, as a manifest and as the engine reads it.
#[derive(Clone)]
pub(crate) struct WorkloadDocument {
    pub(crate) manifest: Value,
    kind: ObjectKind,
    facts: Object,
}

impl WorkloadDocument {
    pub(crate) fn of(manifest: Value) -> Self {
        let text = |field: &str| manifest[field].as_str().unwrap();
        let kind = ObjectKind::of_manifest(text("apiVersion"), text("kind")).unwrap();
        let facts = kind.deserialize(&manifest).unwrap();
        Self { manifest, kind, facts }
    }

    fn name(&self) -> &Text {
        &self.facts.metadata().name
    }
}

impl Document for WorkloadDocument {
    fn object(&self) -> Option<&Value> {
        Some(&self.manifest)
    }

    fn changes_template(&self) -> bool {
        true
    }
}

impl Engine {
    /// The documents of the configuration's workloads, which the engine judges.
    pub(crate) fn documents(&mut self, configuration: &Configuration) -> Rc<[WorkloadDocument]> {
        if let Some((written, documents)) = &self.written
            && written.zones == configuration.zones
            && written.workloads == configuration.workloads
        {
            return Rc::clone(documents);
        }
        let style = Style::of(configuration);
        let documents: Rc<[WorkloadDocument]> = (0..configuration.workloads.len())
            .map(|index| WorkloadDocument::of(manifests::workload(configuration, index, style)))
            .collect();
        self.written = Some((configuration.clone(), Rc::clone(&documents)));
        documents
    }

    /// Judges each of these workloads while all of them are in the cluster of the configuration.
    pub(crate) fn judge(
        &mut self,
        configuration: &Configuration,
        documents: &[WorkloadDocument],
        mode: Mode,
    ) -> Vec<Verdict> {
        let (zones, volume) = (&configuration.zones, &configuration.volume);
        let cluster =
            self.clusters.entry((zones.clone(), *volume)).or_insert_with(|| cluster(zones, volume));
        for document in documents {
            cluster.apply(document.facts.clone());
        }
        let verdicts =
            documents.iter().map(|document| verdict(document, None, cluster, mode)).collect();
        for document in documents {
            cluster.remove(document.kind, NAMESPACE, document.name());
        }
        verdicts
    }

    /// Judges the update of the only workload from its state in `before` to its state in `after`.
    pub(crate) fn judge_update(
        &mut self,
        before: &Configuration,
        after: &Configuration,
    ) -> Verdict {
        let document = |configuration| {
            WorkloadDocument::of(manifests::workload(configuration, 0, Style::of(configuration)))
        };
        let (old, new) = (document(before), document(after));
        let cluster = self
            .clusters
            .entry((after.zones.clone(), after.volume))
            .or_insert_with(|| cluster(&after.zones, &after.volume));
        cluster.apply(old.facts.clone());
        let verdict = verdict(&new, Some(&old), cluster, Mode::Judge);
        cluster.remove(old.kind, NAMESPACE, old.name());
        verdict
    }
}

fn cluster(zones: &[u8], volume: &Volume) -> Snapshot {
    let mut cluster = Snapshot::complete();
    for object in manifests::cluster(zones, volume) {
        cluster.apply(WorkloadDocument::of(object).facts);
    }
    cluster
}

fn verdict(
    document: &WorkloadDocument,
    old: Option<&WorkloadDocument>,
    cluster: &Snapshot,
    mode: Mode,
) -> Verdict {
    let metadata = document.facts.metadata();
    let reference = ObjectRef {
        api_version: document.manifest["apiVersion"].as_str().unwrap().into(),
        kind: document.kind.name().into(),
        namespace: Some(metadata.namespace.clone()),
        name: metadata.name.clone(),
    };
    let review = Review {
        object: &document.facts,
        old: old.map(|earlier| &earlier.facts),
        reference: &reference,
        scaled: None,
        document,
        mode,
    };
    evaluate(&review, cluster.view(), &SETTINGS)
}
