//! The scheduler's filters: on which nodes a pod may be placed at this moment.
//!
//! Which of them it takes is anybody's guess, so the machine tries them all.

use crate::configuration::{Access, NODES, Spread};
use crate::machine::Machine;
use crate::state::{ACTIVE, PHASES, State, class};

impl Machine<'_> {
    /// Whether a pod of this workload's revision passes every filter on the node.
    pub(crate) fn fits(
        &self,
        state: &State,
        workload: usize,
        revision: usize,
        node: usize,
    ) -> bool {
        let template = self.template(workload, revision);
        template.selected.has(node)
            && template.tolerated.has(node)
            && self.has_room(state, node)
            && self.port_is_free(state, workload, revision, node)
            && self.volume_allows(state, workload, revision, node)
            && self.affinity_allows(state, workload, revision, node)
            && self.anti_affinity_allows(state, workload, revision, node)
            && self.spread_allows(state, workload, revision, node)
    }

    fn has_room(&self, state: &State, node: usize) -> bool {
        let Some(capacity) = self.configuration.capacity else {
            return true;
        };
        let pods: u8 = self
            .classes()
            .map(|class| state.on_node(class, &PHASES, node))
            .sum();
        pods < capacity
    }

    /// A port of the node is taken until the pod that has it is gone (`NodePorts`).
    fn port_is_free(&self, state: &State, workload: usize, revision: usize, node: usize) -> bool {
        let mut others = self.classes().filter(|class| {
            self.template(class / 2, class % 2).port && state.on_node(*class, &PHASES, node) > 0
        });
        !self.template(workload, revision).port || others.next().is_none()
    }

    /// The PV's node affinity, and ReadWriteOncePod: any other pod of the claim in the cluster, Terminating ones
    /// included, keeps this one Pending (`VolumeRestrictions`).
    fn volume_allows(&self, state: &State, workload: usize, revision: usize, node: usize) -> bool {
        let volume = &self.configuration.volume;
        let in_use = || (0..self.nodes()).any(|node| self.has_volume_pods(state, node));
        !self.template(workload, revision).uses_volume
            || (volume.nodes.has(node) && !(volume.access == Access::SinglePod && in_use()))
    }

    /// Required pod affinity on the hostname. Terminating pods match too. A pod that matches its own term may go
    /// anywhere while no pod in the cluster matches (`satisfyPodAffinity`).
    fn affinity_allows(
        &self,
        state: &State,
        workload: usize,
        revision: usize,
        node: usize,
    ) -> bool {
        let Some((workloads, own_revision)) =
            self.template(workload, revision).effective_affinity()
        else {
            return true;
        };
        let matching = |node: usize| {
            self.classes().any(|class| {
                workloads & (1 << (class / 2)) != 0
                    && (!own_revision || class % 2 == revision)
                    && state.on_node(class, &PHASES, node) > 0
            })
        };
        let matches_itself = workloads & (1 << workload) != 0;
        matching(node) || (matches_itself && !(0..self.nodes()).any(matching))
    }

    /// Required anti-affinity, the pod's own and that of the pods already there. Terminating pods count.
    fn anti_affinity_allows(
        &self,
        state: &State,
        workload: usize,
        revision: usize,
        node: usize,
    ) -> bool {
        let own = self.template(workload, revision).anti_affinity;
        (0..2).all(|other| {
            let forbids = own || self.template(workload, other).anti_affinity;
            !forbids || state.on_node(class(workload, other), &PHASES, node) == 0
        })
    }

    fn spread_allows(&self, state: &State, workload: usize, revision: usize, node: usize) -> bool {
        let template = self.template(workload, revision);
        let hostnames: [u8; NODES] = [0, 1, 2, 3];
        let allows = |spread: Option<Spread>, domains: &[u8]| {
            spread.is_none_or(|spread| {
                self.skew_allows(state, spread, domains, (workload, revision), node)
            })
        };
        allows(template.hostname_spread, &hostnames)
            && allows(template.zone_spread, &self.configuration.zones)
    }

    /// `matchNum + selfMatchNum - minMatchNum <= maxSkew`. The domains are those of the nodes that the node selector
    /// and node affinity allow (neither taints nor the PV narrow them), and Terminating pods do not count.
    fn skew_allows(
        &self,
        state: &State,
        spread: Spread,
        domains: &[u8],
        (workload, revision): (usize, usize),
        node: usize,
    ) -> bool {
        let template = self.template(workload, revision);
        let own_revision = spread.own_revision && template.has_hash();
        let pods_on = |node: usize| -> u8 {
            let counts = |other: &usize| !own_revision || *other == revision;
            (0..2)
                .filter(counts)
                .map(|other| state.on_node(class(workload, other), &ACTIVE, node))
                .sum()
        };
        let counted = || (0..self.nodes()).filter(|node| template.selected.has(*node));
        let pods_in = |domain: u8| -> u8 {
            counted()
                .filter(|node| domains[*node] == domain)
                .map(pods_on)
                .sum()
        };
        let least = counted()
            .map(|node| pods_in(domains[node]))
            .min()
            .unwrap_or(0);
        pods_in(domains[node]) + 1 - least <= spread.max_skew
    }
}
