//! The scenarios observed on a real control plane, as configurations with the outcome that was seen there.
//!
//! Node loss (S13, S14) and the scheduler's missed wake-up (S15) are beyond the model; X15 is about the API server.

use crate::configuration::{
    Affinity, Amount, Configuration, Kind, NodeSet, Spread, Strategy, Volume, Workload,
};
use crate::explore::Outcome::{self, Deadlock, Delay, None as Nothing, Stuck};
use crate::explore::Start;

/// A scenario: its name, the configuration and the outcome.
pub(crate) type Row = (&'static str, Configuration, Outcome);

const RWO: &[&str] = &["ReadWriteOnce"];
const RWOP: &[&str] = &["ReadWriteOncePod"];
const DEFAULT: Strategy = Strategy::DEFAULT;
const SKEW_OF_ONE: Option<Spread> = Some(Spread {
    max_skew: 1,
    own_revision: false,
});
/// Affinity masks: the pods of the first, of the second, of both workloads.
const FIRST: u8 = 0b01;
const SECOND: u8 = 0b10;
const BOTH: u8 = 0b11;

fn web(strategy: Strategy, replicas: u8) -> Workload {
    Workload::deployment(strategy, replicas)
}

/// What happens to the first workload when it is changed: the scenario, before, after, from which state, the outcome.
pub(crate) type Change = (&'static str, Configuration, Configuration, Start, Outcome);

pub(crate) fn changes() -> Vec<Change> {
    let stuck = || rwo(web(DEFAULT, 1));
    let recreate = rwo(web(Strategy::Recreate, 1));
    let zero_surge = rwo(web(Strategy::rolling(0, 1), 1));
    let colocated = rwo(web(DEFAULT, 1).affinity(FIRST));
    vec![
        // It completes, and in the meantime the new pod waits for the old one to go.
        (
            "S1u stuck, patched to Recreate",
            stuck(),
            recreate,
            Start::Trapped,
            Delay,
        ),
        (
            "S1u stuck, patched to surge 0",
            stuck(),
            zero_surge,
            Start::Trapped,
            Delay,
        ),
        (
            "S3 self affinity added by UPDATE",
            stuck(),
            colocated,
            Start::Well,
            Nothing,
        ),
    ]
}

/// Three nodes, an attachable driver.
fn world(modes: &[&str], workloads: &[Workload]) -> Configuration {
    Configuration::new(3, Volume::with_modes(modes), workloads)
}

fn rwo(workload: Workload) -> Configuration {
    world(RWO, &[workload])
}

fn rwop(workload: Workload) -> Configuration {
    world(RWOP, &[workload])
}

pub(crate) fn rows() -> Vec<Row> {
    [single_workload(), constraints(), single_pod(), sharing()].concat()
}

fn single_workload() -> Vec<Row> {
    let quarter_down = Strategy::RollingUpdate {
        surge: Amount::Number(0),
        unavailable: Amount::Percent(25),
    };
    let static_pv = |modes| world(modes, &[web(DEFAULT, 1)]);
    let mut no_attach = rwo(web(DEFAULT, 2));
    no_attach.volume.attach_required = false;
    let mut local = rwo(web(DEFAULT, 2));
    local.volume.nodes = NodeSet::of(&[1]);
    vec![
        ("S1 default RollingUpdate", rwo(web(DEFAULT, 1)), Deadlock),
        // At most a delay: what was seen there is the wait for a detach, told apart by `Worst::wait`.
        ("S2 Recreate", rwo(web(Strategy::Recreate, 1)), Nothing),
        (
            "S3 self affinity",
            rwo(web(DEFAULT, 1).affinity(FIRST)),
            Nothing,
        ),
        (
            "S4 surge 0, unavailable 1",
            rwo(web(Strategy::rolling(0, 1), 1)),
            Delay,
        ),
        (
            "S4 surge 0, unavailable 25%",
            rwo(web(quarter_down, 1)),
            Delay,
        ),
        (
            "S4 with self affinity",
            rwo(web(Strategy::rolling(0, 1), 1).affinity(FIRST)),
            Nothing,
        ),
        (
            "S5 two replicas, Recreate",
            rwo(web(Strategy::Recreate, 2)),
            Stuck,
        ),
        (
            "S6 three replicas, self affinity",
            rwo(web(DEFAULT, 3).affinity(FIRST)),
            Nothing,
        ),
        ("S8 attachRequired: false, two replicas", no_attach, Nothing),
        ("S9 PV with node affinity to one node", local, Nothing),
        (
            "S10 PV [RWO,RWX]",
            world(&["ReadWriteOnce", "ReadWriteMany"], &[web(DEFAULT, 2)]),
            Nothing,
        ),
        (
            "S10 PV [RWO,ROX]",
            world(&["ReadWriteOnce", "ReadOnlyMany"], &[web(DEFAULT, 2)]),
            Nothing,
        ),
        (
            "S10c PV [RWO], whatever the claim asks",
            world(RWO, &[web(DEFAULT, 2)]),
            Stuck,
        ),
        (
            "X1 DaemonSet",
            rwo(Workload::new(Kind::DaemonSet, 0)),
            Stuck,
        ),
        (
            "X1 Job with parallelism 2",
            rwo(Workload::new(Kind::Job { completions: 2 }, 2)),
            Stuck,
        ),
        (
            "X1 StatefulSet, claim in the template",
            rwo(Workload::new(Kind::StatefulSet, 2)),
            Stuck,
        ),
        (
            "X1 scaled from 1 to 2 on Recreate",
            rwo(web(Strategy::Recreate, 2)),
            Stuck,
        ),
        (
            "X10 no replicas, RollingUpdate",
            rwo(web(DEFAULT, 0)),
            Nothing,
        ),
        (
            "X10 no replicas, Recreate",
            rwo(web(Strategy::Recreate, 0)),
            Nothing,
        ),
        (
            "X12 bound to a static PV [RWX]",
            static_pv(&["ReadWriteMany"]),
            Nothing,
        ),
        ("X12 bound to a static PV [RWO]", static_pv(RWO), Deadlock),
        (
            "X13 Job, parallelism 2, completions 1",
            rwo(Workload::new(Kind::Job { completions: 1 }, 2)),
            Nothing,
        ),
    ]
}

fn constraints() -> Vec<Row> {
    let full = |strategy| {
        let mut world = rwo(web(strategy, 1).affinity(FIRST));
        world.capacity = Some(1);
        world
    };
    let preferred = |strategy| {
        let mut workload = web(strategy, 1);
        workload.affinity = Affinity::Preferred;
        rwo(workload)
    };
    let own_revision = |strategy, replicas| {
        let mut workload = web(strategy, replicas);
        workload.affinity = Affinity::Required {
            workloads: FIRST,
            own_revision: true,
        };
        rwo(workload)
    };
    let spread = |hostname_spread, zone_spread, zones: &[u8]| {
        let mut workload = web(DEFAULT, 1).affinity(FIRST);
        (workload.hostname_spread, workload.zone_spread) = (hostname_spread, zone_spread);
        let mut world = rwo(workload);
        world.zones = zones.to_vec();
        world
    };
    let with_other = |other: Workload| {
        world(
            RWO,
            &[web(DEFAULT, 1).affinity(BOTH), without_volume(other)],
        )
    };
    vec![
        (
            "X2 self affinity, node full, default surge",
            full(DEFAULT),
            Deadlock,
        ),
        (
            "X2 self affinity, node full, surge 0",
            full(Strategy::rolling(0, 1)),
            Nothing,
        ),
        ("X3 preferred self affinity", preferred(DEFAULT), Deadlock),
        (
            "X4 affinity matches other pods too",
            with_other(web(DEFAULT, 2)),
            Deadlock,
        ),
        (
            "X4 the other pods are held by it as well",
            with_other(web(DEFAULT, 2).affinity(BOTH)),
            Nothing,
        ),
        (
            "X5 matchLabelKeys, RollingUpdate",
            own_revision(DEFAULT, 1),
            Deadlock,
        ),
        (
            "X5 matchLabelKeys, Recreate",
            own_revision(Strategy::Recreate, 3),
            Nothing,
        ),
        (
            "X6 self affinity, hostname spread",
            spread(SKEW_OF_ONE, None, &[0, 0, 0]),
            Deadlock,
        ),
        (
            "X6 self affinity, zone spread, two zones",
            spread(None, SKEW_OF_ONE, &[0, 0, 1]),
            Deadlock,
        ),
        (
            "X6 self affinity, zone spread, one zone",
            spread(None, SKEW_OF_ONE, &[0, 0, 0]),
            Nothing,
        ),
    ]
}

fn single_pod() -> Vec<Row> {
    let mut no_attach = rwop(web(DEFAULT, 1));
    no_attach.volume.attach_required = false;
    let mut local = rwop(web(DEFAULT, 1));
    local.volume.nodes = NodeSet::of(&[2]);
    vec![
        (
            "S7 RWOP, default RollingUpdate",
            rwop(web(DEFAULT, 1)),
            Deadlock,
        ),
        (
            "S7 RWOP, surge 0, unavailable 1",
            rwop(web(Strategy::rolling(0, 1), 1)),
            Nothing,
        ),
        (
            "S7 RWOP, Recreate",
            rwop(web(Strategy::Recreate, 1)),
            Nothing,
        ),
        ("X7 RWOP, attachRequired: false", no_attach, Deadlock),
        (
            "X7 RWOP, one node",
            rwop(web(DEFAULT, 1).on(&[0])),
            Deadlock,
        ),
        ("X7 RWOP, node-local volume", local, Deadlock),
        (
            "X7 RWOP, self affinity",
            rwop(web(DEFAULT, 1).affinity(FIRST)),
            Deadlock,
        ),
        (
            "X8 RWOP, surge 1, unavailable 1",
            rwop(web(Strategy::rolling(1, 1), 1)),
            Nothing,
        ),
    ]
}

fn sharing() -> Vec<Row> {
    let single = |workload: Workload| workload.affinity(FIRST);
    let backup = Workload::new(Kind::Job { completions: 1 }, 1);
    let both = |modes, first, second| world(modes, &[first, second]);
    vec![
        (
            "X1 two Deployments share a claim",
            both(RWO, web(DEFAULT, 1), web(DEFAULT, 1)),
            Stuck,
        ),
        (
            "X1 an app and its backup Job share a claim",
            both(RWO, web(Strategy::Recreate, 1), backup),
            Stuck,
        ),
        (
            "X9 RWOP shared by two workloads",
            both(RWOP, web(Strategy::Recreate, 1), web(Strategy::Recreate, 1)),
            Stuck,
        ),
        (
            "X9 RWOP shared on one node",
            both(RWOP, web(DEFAULT, 1).on(&[0]), web(DEFAULT, 1).on(&[0])),
            Stuck,
        ),
        (
            "X11 backup follows the app",
            both(RWO, single(web(DEFAULT, 1)), backup.affinity(FIRST)),
            Nothing,
        ),
        // Moving away, the app waits until the backup is done.
        (
            "X11 backup follows an app on Recreate",
            both(RWO, web(Strategy::Recreate, 1), backup.affinity(FIRST)),
            Delay,
        ),
        (
            "X11 each follows itself",
            both(
                RWO,
                single(web(DEFAULT, 1)),
                web(DEFAULT, 1).affinity(SECOND),
            ),
            Stuck,
        ),
        (
            "X11 pinned to two hosts",
            both(RWO, web(DEFAULT, 1).on(&[0]), web(DEFAULT, 1).on(&[1])),
            Stuck,
        ),
        (
            "X11 pinned to the same host",
            both(RWO, web(DEFAULT, 1).on(&[1]), web(DEFAULT, 1).on(&[1])),
            Nothing,
        ),
        (
            "X11 pinned together",
            both(
                RWO,
                web(DEFAULT, 1).affinity(BOTH),
                web(DEFAULT, 1).affinity(BOTH),
            ),
            Nothing,
        ),
        (
            "X14 a StatefulSet's claim used by another",
            both(RWO, Workload::new(Kind::StatefulSet, 1), web(DEFAULT, 1)),
            Stuck,
        ),
    ]
}

/// The same workload without the claim.
fn without_volume(mut workload: Workload) -> Workload {
    workload.uses_volume = false;
    workload
}
