//! The scheduler's filters: the nodes on which a pod may be placed now.
//!
//! The scheduler's choice among them is not predictable, so the machine tries them all.

use crate::configuration::{Access, NODES, Spread};
use crate::machine::Machine;
use crate::state::{ACTIVE, PHASES, State, revisions};

impl Machine<'_> {
    /// Whether a pod of the class `own` passes every filter on the node.
    pub(crate) fn fits(&self, state: &State, own: usize, node: usize) -> bool {
        let template = self.template(own);
        template.selected.has(node)
            && template.tolerated.has(node)
            && self.has_room(state, node)
            && self.port_is_free(state, own, node)
            && self.volume_allows(state, own, node)
            && self.affinity_allows(state, own, node)
            && self.anti_affinity_allows(state, own, node)
            && self.spread_allows(state, own, node)
    }

    fn has_room(&self, state: &State, node: usize) -> bool {
        let pods = self.classes().map(|class| state.on_node(class, &PHASES, node));
        let capacity = self.configuration.capacity;
        capacity.is_none_or(|capacity| pods.sum::<u8>() < capacity)
    }

    /// A host port is taken until the pod that uses it is gone (`NodePorts`).
    fn port_is_free(&self, state: &State, own: usize, node: usize) -> bool {
        let has_it =
            |class: usize| self.template(class).port && state.on_node(class, &PHASES, node) > 0;
        !self.template(own).port || !self.classes().any(has_it)
    }

    /// The PV's node affinity, and ReadWriteOncePod: this pod stays Pending while any other pod of
    /// the claim exists in the cluster, including Terminating ones (`VolumeRestrictions`).
    fn volume_allows(&self, state: &State, own: usize, node: usize) -> bool {
        let volume = &self.configuration.volume;
        let in_use = || (0..self.nodes()).any(|other| self.has_volume_pods(state, other));
        !self.template(own).uses_volume
            || (volume.nodes.has(node) && !(volume.access == Access::SinglePod && in_use()))
    }

    /// Required pod affinity on the hostname. Terminating pods match too. A pod that matches its
    /// own term may be placed anywhere while no pod in the cluster matches (`satisfyPodAffinity`).
    fn affinity_allows(&self, state: &State, own: usize, node: usize) -> bool {
        let Some((workloads, own_revision)) = self.template(own).effective_affinity() else {
            return true;
        };
        let matching = |there: usize| {
            self.classes().any(|class| {
                workloads & (1 << (class / 2)) != 0
                    && (!own_revision || class % 2 == own % 2)
                    && state.on_node(class, &PHASES, there) > 0
            })
        };
        let matches_itself = workloads & (1 << (own / 2)) != 0;
        matching(node) || (matches_itself && !(0..self.nodes()).any(matching))
    }

    /// Required anti-affinity of the pod itself and of the pods that are already there. Terminating
    /// pods count.
    fn anti_affinity_allows(&self, state: &State, own: usize, node: usize) -> bool {
        revisions(own).into_iter().all(|other| {
            let forbids = self.template(own).anti_affinity || self.template(other).anti_affinity;
            !forbids || state.on_node(other, &PHASES, node) == 0
        })
    }

    fn spread_allows(&self, state: &State, own: usize, node: usize) -> bool {
        let template = self.template(own);
        let hostnames: [u8; NODES] = [0, 1, 2, 3];
        let allows = |spread: Option<Spread>, domains: &[u8]| {
            spread.is_none_or(|spread| self.skew_allows(state, spread, domains, own, node))
        };
        allows(template.hostname_spread, &hostnames)
            && allows(template.zone_spread, &self.configuration.zones)
    }

    /// `matchNum + selfMatchNum - minMatchNum <= maxSkew`. The domains are those of the nodes that
    /// the node selector and node affinity allow; neither taints nor the PV limit them. Terminating
    /// pods do not count.
    fn skew_allows(
        &self,
        state: &State,
        spread: Spread,
        domains: &[u8],
        own: usize,
        node: usize,
    ) -> bool {
        let template = self.template(own);
        let own_revision = spread.own_revision && template.has_hash();
        let pods_on = |counted: usize| -> u8 {
            revisions(own)
                .into_iter()
                .filter(|class| !own_revision || *class == own)
                .map(|class| state.on_node(class, &ACTIVE, counted))
                .sum()
        };
        let selected = || (0..self.nodes()).filter(|index| template.selected.has(*index));
        let pods_in = |domain: u8| -> u8 {
            selected().filter(|index| domains[*index] == domain).map(pods_on).sum()
        };
        let least = selected().map(|index| pods_in(domains[index])).min();
        pods_in(domains[node]) + 1 - least.unwrap_or(0) <= spread.max_skew
    }
}
