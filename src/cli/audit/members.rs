//! The objects of a cluster, each judged together with the others.

use std::ops::Deref;

use jiff::Timestamp;
use serde_json::Value;

use engine::model::ListRoom;
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::policy::Action;
use engine::snapshot::{BatchOrder, Lookup, Overlay, Snapshot, StoredObject, View};
use engine::verdict::{Document, EffectivePolicy, Finding, Mode, Review, Verdict, evaluate};

/// An object that is judged.
pub(in crate::cli) struct Member {
    pub(super) kind: ObjectKind,
    object: Object,
    pub(in crate::cli) reference: ObjectRef,
    /// Whether it has no pods now, and is judged as if it had one.
    is_at_zero: bool,
}

/// The objects of a cluster that are judged, in the order of their turns.
pub(in crate::cli) struct Members {
    all: Vec<Member>,
    order: BatchOrder,
    /// Whether the classes could not be read, so that their names must be enough.
    partial: bool,
}

impl Deref for Members {
    type Target = [Member];

    fn deref(&self) -> &[Member] {
        &self.all
    }
}

impl Members {
    pub(in crate::cli) fn new(cluster: &Snapshot) -> Self {
        let mut all: Vec<Member> = cluster.objects().filter_map(Member::from_stored).collect();
        all.sort_by_cached_key(|member| {
            let reference = &member.reference;
            (
                reference.namespace.clone(),
                reference.kind.clone(),
                reference.name.clone(),
            )
        });
        Self {
            order: BatchOrder::of(all.iter().map(|member| &member.object).enumerate()),
            partial: cluster.view().default_storage_class() == Lookup::NotSynced,
            all,
        }
    }

    /// Judges the object with this number. Patches need its document.
    pub(in crate::cli) fn verdict(
        &self,
        number: usize,
        live: &Live<'_>,
        cluster: &Snapshot,
        effective: &EffectivePolicy,
    ) -> Verdict {
        let member = &self.all[number];
        let review = Review {
            object: &member.object,
            old: None,
            reference: &member.reference,
            scaled: None,
            document: live,
            mode: Mode::Propose,
        };
        let overlay = Overlay {
            partial: self.partial,
            batch: Some((&self.order, number)),
            ..Overlay::NOTHING
        };
        evaluate(&review, View::new(cluster, &overlay), effective)
    }
}

impl Members {
    /// Whether the guard lets an update of the object with this number pass that turns the first
    /// document into the second.
    pub(super) fn may_become(
        &self,
        number: usize,
        [old, new]: [&Value; 2],
        now: Timestamp,
        cluster: &Snapshot,
        effective: &EffectivePolicy,
    ) -> bool {
        let member = &self.all[number];
        let read = |it: &Value| member.kind.read(&it.to_string(), &ListRoom::endless());
        let [Ok(before), Ok(after)] = [old, new].map(read) else {
            return false;
        };
        let document = Live {
            document: Some(new),
            now,
        };
        let review = Review {
            object: &after,
            old: Some(&before),
            reference: &member.reference,
            scaled: None,
            document: &document,
            mode: Mode::Judge,
        };
        let verdict = evaluate(&review, cluster.view(), effective);
        verdict.action() != Action::Deny
    }
}

impl Member {
    fn from_stored(stored: &StoredObject) -> Option<Self> {
        let mut object = match stored {
            StoredObject::Workload(it) => Object::Workload((**it).clone()),
            StoredObject::Claim(it) => Object::Claim((**it).clone()),
            StoredObject::Autoscaler(it) => Object::Autoscaler((**it).clone()),
            _ => return None,
        };
        let metadata = object.metadata();
        let kind = stored.kind();
        let reference = kind.reference(&metadata.namespace, &metadata.name);
        let is_at_zero = match &mut object {
            // It will have pods again; otherwise nobody would keep it.
            Object::Workload(it) if it.kind.scales() && it.replicas == 0 => {
                it.replicas = 1;
                true
            }
            _ => false,
        };
        Some(Self {
            kind,
            object,
            reference,
            is_at_zero,
        })
    }

    /// The finding, with a note if it assumes that the object has pods.
    pub(in crate::cli) fn qualified(&self, mut finding: Finding) -> Finding {
        if self.is_at_zero {
            finding.message += " It has no pods now, and is judged as with one.";
            finding.brief += " (once it has pods)";
        }
        finding
    }
}

/// An object as it is in the cluster, if it was fetched.
pub(in crate::cli) struct Live<'d> {
    pub(in crate::cli) document: Option<&'d Value>,
    pub(in crate::cli) now: Timestamp,
}

impl Document for Live<'_> {
    fn object(&self) -> Option<&Value> {
        self.document
    }

    fn changes_template(&self) -> bool {
        true
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(self.now)
    }
}
