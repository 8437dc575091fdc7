//! The program's output, on a real control plane with simulated nodes: each cause as it happens,
//! and each command run unchanged, with a guard that refuses, one that warns, and none.
//!
//! The states are functions. Each is played in its own namespace, whose name chooses the guard's
//! behaviour ([`Mode`]). The guard does not see the requests that set a state up; it sees only the
//! printed commands. `tests/printed/commands.md` lists them.
//!
//! `cargo test --workspace --test diagnose -- rollout` plays the states with that word in their names.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod audited;
mod delivered;
mod denials;
mod documents;
#[path = "../harness/mod.rs"]
mod harness;
mod incident;
mod incident_cluster;
#[path = "../e2e/install.rs"]
#[allow(dead_code, reason = "only some suites install the policies")]
mod install;
mod nodes;
#[path = "../printed/mod.rs"]
mod printed;
mod right_manifests;
mod rights;
mod rollbacks;
mod rollouts;
mod shared_storage;
mod sharing;
mod stalled;
mod table;
mod tutorial;
mod unscheduled;

use libtest_mimic::{Arguments, Completion, Trial};

use incident::{Incident, Setting, USUAL};
use incident_cluster::Mode;

/// The default number of states that are played at once. They mostly wait for controllers.
const AT_ONCE: usize = 5;

/// A state in which the program prints commands.
struct State {
    /// Its title in the list of commands.
    title: &'static str,
    /// The name of its namespaces and nodes.
    name: &'static str,
    setting: Setting,
    modes: &'static [Mode],
    play: fn(&Incident),
}

const fn state(title: &'static str, name: &'static str, play: fn(&Incident)) -> State {
    State { title, name, setting: USUAL, modes: &Mode::ALL, play }
}

impl State {
    const fn on(self, setting: Setting) -> Self {
        Self { setting, ..self }
    }

    /// Plays the state in one mode only, because the guard does not matter in it.
    const fn once(self) -> Self {
        Self { modes: &[Mode::Deny], ..self }
    }
}

/// One line per state: its title, its name, its function, and options.
macro_rules! states {
    ($($title:literal, $name:literal, $play:path $(, $how:ident $(($setting:expr))?)*;)*) => {
        &[$(state($title, $name, $play)$(.$how($($setting)?))*),*]
    };
}

const STATES: &[State] = states! {
    "A volume that stays mounted", "mounted", stalled::a_volume_that_stays_mounted, once;
    "A node to which nobody attaches", "unmanaged", stalled::a_node_to_which_nobody_attaches, once;
    "A pod that does not end", "hangs", stalled::a_pod_that_does_not_end, once;
    "A Job beside a pod on a full node", "full-node", stalled::a_job_beside_a_pod_on_a_full_node;
    "A rollout that overlaps", "overlap", rollouts::a_rollout_that_overlaps;
    "A rollout of a ReadWriteOncePod claim", "one-pod", rollouts::a_rollout_of_a_volume_for_one_pod, on(Setting::Shared("ReadWriteOncePod"));
    "An update that moves the pod", "moves", rollouts::an_update_that_moves_the_pod;
    "A volume that is on its way", "delay", rollouts::a_volume_on_its_way;
    "More replicas than the volume can have", "replicas", sharing::more_replicas_than_the_volume_can_have;
    "A StatefulSet whose first pod waits", "ordinals", sharing::a_stateful_set_whose_first_pod_waits;
    "An autoscaler that asks for more", "autoscaler", sharing::an_autoscaler_that_asks_for_more;
    "Two workloads on one claim", "shared", sharing::a_claim_that_two_workloads_share;
    "Two workloads whose selectors keep them apart", "selectors", sharing::selectors_that_keep_them_apart;
    "A claim that is shared with what keeps its pods", "kept", sharing::a_claim_that_is_shared_with_what_keeps_its_pods;
    "A drain that the scheduler does not notice", "drain", nodes::a_drain_that_the_scheduler_does_not_notice, on(Setting::Quiet);
    "A node that is lost, of a Deployment", "lost-node", nodes::a_node_that_is_lost_of_a_deployment;
    "A node that is lost, of a StatefulSet", "lost-set", nodes::a_node_that_is_lost_of_a_set, once;
    "A lost node whose pod stays", "stays", nodes::a_lost_node_whose_pod_stays, once;
    "A disk whose machine is gone", "machine", nodes::a_disk_whose_machine_is_gone, once;
    "A driver that cannot detach", "driver", nodes::a_driver_that_cannot_detach;
    "A Job beside a pod on a cordoned node", "follower", unscheduled::a_job_beside_a_pod_on_a_cordoned_node;
    "A volume on a cordoned node", "pinned", unscheduled::a_volume_on_a_cordoned_node;
    "Two revisions that send the pod elsewhere", "elsewhere", unscheduled::two_revisions_that_send_the_pod_elsewhere;
    "Nodes without room for a volume", "room", unscheduled::nodes_without_room_for_a_volume, on(Setting::Quiet), once;
    "A claim that nobody provisions", "unbound", unscheduled::a_claim_that_nobody_provisions;
    "A claim whose volume was an earlier one's", "earlier", unscheduled::a_volume_of_an_earlier_claim;
    "A claim that was bound before", "bound-before", unscheduled::a_claim_that_was_bound_before;
    "A node without the driver", "plugin", unscheduled::a_node_without_the_driver;
    "One disk behind two volumes", "twins", unscheduled::one_disk_behind_two_volumes;
    "A pod that names its node", "named", unscheduled::a_pod_that_names_its_node;
    "Nodes that attach no more volumes", "limit", unscheduled::nodes_that_attach_no_more_volumes;
    "A rollout of what Argo CD or Flux delivers", "synced", delivered::by_argo_cd_or_flux;
    "What an audit repairs", "audit", audited::what_lives;
    "What KEDA scales", "keda", delivered::by_keda;
    "A Rollout of Argo", "argo", delivered::by_argo_rollouts;
    "A move to shared storage, there and back", "shared-storage", shared_storage::there_and_back;
    "A move of sets", "sets", shared_storage::of_sets;
    "The role of the runbook", "role", rights::the_role_of_the_runbook_sees_everything, once;
    "Somebody who may read little", "rights", rights::what_may_not_be_seen_is_said_and_the_rest_is_reported;
    "Two rollouts that wait for each other", "two", rollbacks::of_two_rollouts;
    "A rollout whose Events are gone", "no-events", rollbacks::without_events, once;
    "A rollback of a StatefulSet", "back-set", rollbacks::of_a_stateful_set, once;
    "A rollback of a DaemonSet", "back-daemon", rollbacks::of_a_daemon_set, once;
    "A change to a Deployment that is at fault", "hotfix", denials::a_change_to_what_is_at_fault;
    "A change to more pods than the volume can have", "more", denials::a_change_to_more_pods_than_the_volume_can_have, once;
    "Recreate over a live Deployment, by server-side apply", "apply", denials::recreate_by_server_side_apply;
    "What is done to a node that is alive", "alive", denials::what_is_done_to_a_node_that_is_alive, once;
    "The pages, with the guard", "pages", documents::with_the_guard, once;
    "The pages, while installing", "install", documents::while_installing, on(Setting::Own), once;
};

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let mut trials = vec![Trial::test("every command of the pages is listed", || {
        documents::every_command_is_listed();
        Ok(())
    })];
    trials.push(Trial::ignorable_test("the tutorial, as printed", || {
        Ok(match tutorial::as_printed() {
            Some(()) => Completion::Completed,
            None => Completion::ignored_with("there is no control plane"),
        })
    }));
    trials.push(Trial::ignorable_test("the manifests to copy", || {
        Ok(match right_manifests::roll_out_and_move() {
            Some(()) => Completion::Completed,
            None => Completion::ignored_with("there is no control plane"),
        })
    }));
    // Some states take turns, so the modes of one state must not be neighbours.
    let by_mode = Mode::ALL.into_iter().flat_map(|mode| {
        STATES
            .iter()
            .filter(move |state| state.modes.contains(&mode))
            .map(move |state| (state, mode))
    });
    trials.extend(by_mode.map(|(state, mode)| {
        let name = format!("{} ({}) | {}", state.title, state.name, mode.name());
        Trial::ignorable_test(name, move || {
            let Some(incident) = Incident::new(state.name, state.setting, mode) else {
                return Ok(Completion::ignored_with("there is no control plane"));
            };
            (state.play)(&incident);
            table::assert_has(state.title, &incident.rows());
            Ok(Completion::Completed)
        })
    }));
    libtest_mimic::run(&arguments, trials).exit();
}
