//! A claim that arrives after the workloads that wait for it.

use std::sync::Arc;

use crate::model::claim::Claim;
use crate::model::cluster::{ClusterView, Lookup};
use crate::model::layered::Layered;

/// A view in which the claim is already there.
pub(super) struct WithClaim<'a> {
    base: &'a dyn ClusterView,
    claim: Arc<Claim>,
}

impl<'a> WithClaim<'a> {
    pub(super) fn new(base: &'a dyn ClusterView, claim: &Claim) -> Self {
        Self {
            base,
            claim: Arc::new(claim.clone()),
        }
    }
}

impl Layered for WithClaim<'_> {
    fn beneath(&self) -> &dyn ClusterView {
        self.base
    }

    fn find_claim(&self, namespace: &str, name: &str) -> Lookup<Arc<Claim>> {
        let metadata = &self.claim.metadata;
        if metadata.name == name && metadata.namespace == namespace {
            return Lookup::Found(Arc::clone(&self.claim));
        }
        self.base.claim(namespace, name)
    }
}
