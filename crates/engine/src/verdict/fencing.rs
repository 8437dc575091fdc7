//! Judging requests after which the volumes of a node may be attached to another one.

use jiff::{SignedDuration, Timestamp};

use super::{Evaluation, Finding, Verdict, denial};
use crate::model::node::Node;
use crate::model::object::{Object, ObjectRef};
use crate::model::volume_attachment::VolumeAttachment;
use crate::policy::keys::{HOW_KNOWN, IGNORE, REASON, UNTIL};
use crate::policy::{Action, Resolved};
use crate::rules::codes::FENCING_LIVE_NODE;
use crate::rules::{Fencing, FencingReview, Hazard, Subject, judge};

/// The accounts of the attach-detach controller, which detaches unmounted volumes: its own account,
/// or the one that the control plane's controllers share.
const ATTACH_DETACH_CONTROLLER: [&str; 2] =
    ["system:kube-controller-manager", "system:serviceaccount:kube-system:attachdetach-controller"];

impl Evaluation<'_> {
    /// Judges a Node that is tainted or deleted.
    pub(super) fn node(&self, node: &Node) -> Option<Verdict> {
        let deletes = self.review.document.deletes();
        self.fencing(match self.review.old {
            _ if deletes && node.metadata.drained_first => return None,
            _ if deletes => Fencing::DeleteNode(node),
            Some(Object::Node(old)) if node.spec.out_of_service && !old.spec.out_of_service => {
                Fencing::Taint(old)
            }
            _ => return None,
        })
    }

    /// Judges a VolumeAttachment that is deleted.
    pub(super) fn attachment(&self, attachment: &VolumeAttachment) -> Option<Verdict> {
        if !self.review.document.deletes() {
            return None;
        }
        self.fencing(Fencing::DeleteAttachment(attachment))
    }

    fn fencing(&self, fencing: Fencing<'_>) -> Option<Verdict> {
        // Files have no time of submission, and nothing is deleted in them.
        let now = self.review.document.moment()?;
        if self.may_fence() {
            return None;
        }
        let hazards = judge(Subject::Fencing(&FencingReview { fencing, facts: self.facts, now }));
        let object = self.review.reference;
        let add_way_past = |finding: &mut Finding, hazard: &Hazard, resolved: &Resolved<'_>| {
            if finding.action != Action::Deny || !resolved.object_may_override {
                return;
            }
            let way_past = way_past(object, now);
            finding.message.push_str(&format!(
                " If it is off all the same, say how you know in place of the example, and try again: {way_past}"
            ));
            // Real names may be too long for the command.
            let ways = [
                format!("If it is off: {way_past}"),
                "If it is off, annotate it as the rule says.".to_owned(),
            ];
            finding.denial = denial::text(object, hazard, &ways);
        };
        let metadata = self.review.object.metadata();
        Some(self.decided(&hazards, metadata, &object.kind, || false, add_way_past))
    }

    /// Whether the request comes from an account that may fence nodes.
    fn may_fence(&self) -> bool {
        self.review.document.requester().is_some_and(|account| {
            ATTACH_DETACH_CONTROLLER.contains(&&*account) || self.policy.may_fence(&account)
        })
    }
}

/// The time for which a denial can be overridden: a machine that is off now may be on again later.
const OPEN: SignedDuration = SignedDuration::from_hours(1);

/// The command that overrides a denial of the rule for an hour, once its reason is filled in.
fn way_past(object: &ObjectRef, now: Timestamp) -> String {
    let until = now.checked_add(OPEN).unwrap_or(now).strftime("%FT%H:%M:00Z");
    let (kind, name) = (object.kind.to_lowercase(), &object.name);
    format!(
        "`kubectl annotate {kind} {name} {IGNORE}={FENCING_LIVE_NODE} {UNTIL}={until} {REASON}=\"{HOW_KNOWN}\"`."
    )
}
