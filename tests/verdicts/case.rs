//! The cases of the verdicts: data in the YAML files of this folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use engine::model::object::ObjectRef;
use engine::model::workload::WorkloadKind;
use engine::policy::{Action, Policy};
use engine::rules::Certainty;
use engine::snapshot::{Overlay, View};
use engine::storage::Catalog;
use engine::verdict::{Document, EffectivePolicy, Mode, Review, Verdict, evaluate, evaluate_by};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::cluster::{self, Snapshot};
use super::shorthand::Shorthand;
use super::uncertain::Uncertain;

/// A cluster, an object, and what the engine finds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) cluster: Snapshot,
    /// The object to judge, in shorthand.
    pub(crate) judge: Shorthand,
    /// The object before the update, as a merge patch on the new one.
    #[serde(default)]
    pub(crate) old: Option<Value>,
    /// The account that sends the request. Without it there is no request, as for files.
    #[serde(default)]
    pub(crate) requester: Option<String>,
    /// The time of its deletion, if it is being deleted.
    #[serde(default)]
    pub(crate) deleted_at: Option<Timestamp>,
    /// The policy file's text.
    #[serde(default)]
    pub(crate) policy: String,
    /// Rule → outcome, for all findings.
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, String>,
    /// A part of the first message.
    #[serde(default)]
    pub(crate) says: Option<String>,
    /// Parts of all messages, in this order.
    #[serde(default)]
    pub(crate) explains: Vec<String>,
    /// The end of the first brief text.
    #[serde(default)]
    pub(crate) brief: Option<String>,
    /// The first field at fault.
    #[serde(default)]
    pub(crate) field: Option<String>,
    /// All sentences for the user that are no findings. Not checked if absent.
    #[serde(default)]
    pub(crate) notices: Option<Vec<String>>,
    /// Texts that no message contains.
    #[serde(default)]
    pub(crate) hides: Vec<String>,
    /// Rule → certainty, if it is not `verified`.
    #[serde(default)]
    pub(crate) certainty: BTreeMap<String, Certainty>,
    /// Rule → action, if it is not the default for the outcome.
    #[serde(default)]
    pub(crate) actions: BTreeMap<String, String>,
    /// The names of the remedies that help, in order. Not checked if absent.
    #[serde(default)]
    pub(crate) remedies: Option<Vec<String>>,
    /// The reason for which the API server does not deny it by itself; see `uncertain.rs` for those
    /// that follow from its rule or kind.
    #[serde(default)]
    pub(crate) uncertain: Option<Uncertain>,
}

impl Case {
    /// The object to judge.
    pub(crate) fn object(&self) -> Value {
        cluster::manifest(&self.judge)
    }

    /// The object before the update.
    pub(crate) fn before(&self) -> Option<Value> {
        let mut before = self.object();
        json_patch::merge(&mut before, self.old.as_ref()?);
        Some(before)
    }

    /// The verdict on what is submitted.
    pub(crate) fn verdict(&self, mode: Mode) -> Verdict {
        let (object, old) = (self.object(), self.before());
        let documents = Documents {
            object: &object,
            old: old.as_ref(),
            requester: self.requester.as_deref(),
            deleted_at: self.deleted_at,
        };
        judge_submitted(&documents, &self.cluster, &self.policy, mode)
    }
}

pub(crate) struct Documents<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old: Option<&'a Value>,
    pub(crate) requester: Option<&'a str>,
    pub(crate) deleted_at: Option<Timestamp>,
}

impl Document for Documents<'_> {
    fn object(&self) -> Option<&Value> {
        Some(self.object)
    }

    fn changes_template(&self) -> bool {
        let new = self.object.pointer("/spec/template");
        self.old.is_none_or(|old| new != old.pointer("/spec/template"))
    }

    fn requester(&self) -> Option<Cow<'_, str>> {
        self.requester.map(Cow::Borrowed)
    }

    fn deletes(&self) -> bool {
        self.deleted_at.is_some()
    }

    fn moment(&self) -> Option<Timestamp> {
        self.deleted_at
    }
}

pub(crate) fn in_effect(policy: &str) -> EffectivePolicy {
    EffectivePolicy::new(
        Policy::parse(policy, "policy.yaml").expect("the policy of the case is valid"),
        Catalog::embedded().expect("the embedded catalog is valid"),
    )
}

/// Judges `document` in `cluster`.
pub(crate) fn judge(
    document: &Value,
    old: Option<&Value>,
    cluster: &Snapshot,
    policy: &str,
    mode: Mode,
) -> Verdict {
    let documents = Documents { object: document, old, requester: None, deleted_at: None };
    judge_submitted(&documents, cluster, policy, mode)
}

/// Judges the submitted object in `cluster`.
pub(crate) fn judge_submitted(
    documents: &Documents<'_>,
    cluster: &Snapshot,
    policy: &str,
    mode: Mode,
) -> Verdict {
    let Documents { object: document, old, .. } = *documents;
    // Copying the catalog takes longer than judging.
    static BUILT_IN: LazyLock<EffectivePolicy> = LazyLock::new(|| in_effect(""));
    let own;
    let effective = if policy.is_empty() {
        &*BUILT_IN
    } else {
        own = in_effect(policy);
        &own
    };
    let object = cluster::read(document);
    let old_object = old.map(cluster::read);
    let text =
        |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let reference = ObjectRef {
        api_version: text("/apiVersion").into(),
        kind: text("/kind").into(),
        namespace: Some(text("/metadata/namespace").into()),
        name: text("/metadata/name").into(),
    };
    let review = Review {
        object: &object,
        old: old_object.as_ref(),
        reference: &reference,
        scaled: WorkloadKind::from_name(text("/scaled")),
        document: documents,
        mode,
    };
    let overlay = Overlay { partial: cluster.files, files: cluster.files, ..Overlay::NOTHING };
    let facts = cluster.facts();
    let view = View::new(&facts, &overlay);
    let verdict = evaluate(&review, view, effective);
    if let Some(denied) = verdict.with(Action::Deny).next() {
        let alone = evaluate_by(Some(denied.rule), &review, view, effective);
        assert_eq!(alone.action(), Action::Deny, "{} denies {reference} alone", denied.rule);
    }
    verdict
}

/// The cases of all files.
pub(crate) fn cases() -> Vec<Case> {
    // Half of the file is aliases, which the default budget treats as an attack.
    let options = serde_saphyr::options! { budget: None };
    let files = [
        include_str!("cases.yaml"),
        include_str!("custom_kinds.yaml"),
        include_str!("own_claims.yaml"),
        include_str!("ways_out.yaml"),
    ];
    let read = |text| -> Vec<Case> {
        serde_saphyr::from_str_with_options(text, options.clone()).expect("the cases read")
    };
    files.into_iter().flat_map(read).collect()
}
