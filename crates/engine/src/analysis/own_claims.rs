//! A StatefulSet's own claims: those that its claim templates make, each for one pod.

use std::ops::Range;

use super::Analysis;
use crate::model::claim::Claim;
use crate::model::workload::Workload;

/// The most claims of a StatefulSet's pods that are looked up, to bound the work for one object.
const MOST: usize = 256;

/// A claim that a StatefulSet makes, or will make, for one of its pods.
pub(crate) struct OwnClaim<'w> {
    /// The number of its template.
    pub at: usize,
    /// Its template.
    pub template: &'w Claim,
    /// The ordinal of the pod.
    pub ordinal: i64,
    /// Its name.
    pub name: String,
}

impl OwnClaim<'_> {
    /// The field that has its template.
    pub(crate) fn field(&self) -> String {
        format!("spec.volumeClaimTemplates[{}]", self.at)
    }

    /// The claim that will be made.
    pub(crate) fn forecast(&self, namespace: &str) -> Claim {
        let mut claim = self.template.clone();
        claim.metadata.name = self.name.as_str().into();
        claim.metadata.namespace = namespace.into();
        claim
    }
}

/// The claims for the pods with these ordinals, those of one pod after those of another. They may
/// be left from an earlier life of the StatefulSet.
pub(crate) fn of_pods(
    workload: &Workload,
    ordinals: Range<i64>,
) -> impl Iterator<Item = OwnClaim<'_>> {
    let of_pod = |ordinal| {
        workload.claim_templates.iter().zip(workload.claim_stems()).enumerate().map(
            move |(at, (template, stem))| OwnClaim {
                at,
                template,
                ordinal,
                name: format!("{stem}-{ordinal}"),
            },
        )
    };
    // Without templates no number of pods yields a claim.
    ordinals.take(MOST).flat_map(of_pod).take(MOST)
}

/// The claims for all pods.
pub(crate) fn of(workload: &Workload) -> impl Iterator<Item = OwnClaim<'_>> {
    of_pods(workload, workload.ordinals())
}

impl<'a> Analysis<'a> {
    /// The claims for the pods that are made from the template.
    pub(crate) fn own_claims(&self) -> impl Iterator<Item = OwnClaim<'a>> + use<'a> {
        of_pods(self.workload, self.new_pods.clone())
    }

    /// A sentence that says which claims are not looked at; `None` if there are none.
    pub(crate) fn unseen_claims(&self) -> Option<String> {
        let workload = self.workload;
        let templates = i64::try_from(workload.claim_templates.len()).ok()?;
        let all = workload.replicas.saturating_mul(templates);
        let last = of(workload).nth(MOST - 1)?;
        let namespace = &workload.metadata.namespace;
        let exists = self.facts.view.claim(namespace, &last.name).found().is_some();
        (exists && usize::try_from(all).ok()? > MOST).then(|| {
            format!("Only the first {MOST} of the {all} claims of its pods were looked at.")
        })
    }
}
