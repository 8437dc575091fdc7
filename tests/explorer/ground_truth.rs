//! The scenarios observed on a real control plane, as configurations with the outcome that was seen there.
//!
//! A row with a scenario's name is held against `docs/ground-truth.md`, which the suite of scenarios keeps true. Rows
//! without one follow from the Kubernetes source.

use crate::configuration::{
    Affinity, Amount, Binding, Configuration, Kind, NodeSet, Spread, Strategy, Volume, Workload,
};
use crate::explore::Outcome::{self, Deadlock, Delay, None as Nothing, Stuck};
use crate::explore::Start;

/// Scenarios that no row stands for.
pub(crate) const BEYOND_THE_MODEL: &[&str] = &[
    // What happens is luck there, and the model takes every way. X3p and X4 are the same without luck.
    "X3", "X4i", // Nodes die, or are drained while the scheduler misses the event.
    "S13", "S13r", "S13f", "S13d", "S14", "S15", "S15n", // The API server decides.
    "X15",  // Pods of a Job that never end.
    "X1j", // Words that the model lacks: keys of labels in affinities, `minDomains`, the surge of a DaemonSet, disks that
    // only the scheduler guards.
    "Y11m", "Y11d", "Y13", "Y23", "Y23z",
];

/// Each scenario of the document with the outcomes it tells of, one or `none or delay`.
pub(crate) fn documented() -> Vec<(&'static str, Vec<&'static str>)> {
    let lines = include_str!("../../docs/ground-truth.md").lines();
    lines
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, _, outcomes, ..] = cells[..] else {
                return None;
            };
            let is_scenario = name.starts_with(['S', 'X', 'Y']) && name.len() <= 4;
            is_scenario.then(|| (name, outcomes.split([' ', ';']).collect()))
        })
        .collect()
}

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
    let on = |strategy, nodes: &[usize]| rwo(web(strategy, 1).on(nodes));
    let apart = |mut world: Configuration| {
        world.workloads[0].anti_affinity = true;
        world
    };
    let tolerating = |nodes| {
        let mut world = rwo(web(DEFAULT, 1));
        world.workloads[0].tolerated = NodeSet::of(nodes);
        world
    };
    let moved = |name, strategy, outcome| {
        (
            name,
            on(strategy, &[0]),
            on(strategy, &[1]),
            Start::Well,
            outcome,
        )
    };
    vec![
        moved("Y1 moved to another node", DEFAULT, Deadlock),
        moved("Y1r with Recreate", Strategy::Recreate, Nothing),
        moved("Y22m to the node that has the resource", DEFAULT, Deadlock),
        moved("Y1z with surge 0", Strategy::rolling(0, 1), Delay),
        moved("Y1n moved by nodeName", DEFAULT, Deadlock),
        (
            "Y1w a StatefulSet of two moved to another node",
            rwo(Workload::new(Kind::StatefulSet, 2).on(&[0])),
            rwo(Workload::new(Kind::StatefulSet, 2).on(&[1])),
            Start::Well,
            Deadlock,
        ),
        (
            "Y1v a StatefulSet of one moved to another node",
            rwo(Workload::new(Kind::StatefulSet, 1).on(&[0])),
            rwo(Workload::new(Kind::StatefulSet, 1).on(&[1])),
            Start::Well,
            Nothing,
        ),
        (
            "Y1s the same node in other words",
            on(DEFAULT, &[0]),
            on(DEFAULT, &[0]),
            Start::Well,
            Nothing,
        ),
        (
            "Y1a self affinity replaced by nodes",
            rwo(web(DEFAULT, 1).affinity(FIRST)),
            on(DEFAULT, &[1, 2]),
            Start::Well,
            Deadlock,
        ),
        (
            "Y1k self affinity kept, moved to another node",
            rwo(web(DEFAULT, 1).affinity(FIRST).on(&[0])),
            rwo(web(DEFAULT, 1).affinity(FIRST).on(&[1])),
            Start::Well,
            Deadlock,
        ),
        (
            "Y11u anti-affinity taken away",
            apart(on(DEFAULT, &[0])),
            on(DEFAULT, &[0]),
            Start::Well,
            Deadlock,
        ),
        (
            "Y11a anti-affinity replaced by affinity",
            apart(rwo(web(DEFAULT, 1))),
            rwo(web(DEFAULT, 1).affinity(FIRST)),
            Start::Well,
            Deadlock,
        ),
        (
            "Y11r the same with Recreate",
            apart(rwo(web(DEFAULT, 1))),
            rwo(web(Strategy::Recreate, 1).affinity(FIRST)),
            Start::Well,
            Nothing,
        ),
        (
            "Y1t a toleration dropped",
            tolerating(&[0, 1]),
            tolerating(&[0]),
            Start::Well,
            Deadlock,
        ),
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
            "S3u self affinity added by UPDATE",
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
    [
        single_workload(),
        constraints(),
        single_pod(),
        sharing(),
        places(),
        ports(),
        ends(),
    ]
    .concat()
}

fn single_workload() -> Vec<Row> {
    let quarter_down = Strategy::RollingUpdate {
        surge: Amount::Number(0),
        unavailable: Amount::Percent(25),
    };
    let static_pv = |modes| world(modes, &[web(DEFAULT, 2)]);
    let mut no_attach = rwo(web(DEFAULT, 2));
    no_attach.volume.attach_required = false;
    let local = |workload| {
        let mut world = rwo(workload);
        world.volume.nodes = NodeSet::of(&[1]);
        world
    };
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
            "S4p surge 0, unavailable 25%",
            rwo(web(quarter_down, 1)),
            Delay,
        ),
        (
            "S4a with self affinity",
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
        (
            "S9 PV with node affinity to one node",
            local(web(DEFAULT, 1)),
            Nothing,
        ),
        (
            "S9l PV with node affinity to one node, two replicas",
            local(web(DEFAULT, 2)),
            Nothing,
        ),
        (
            "S10 PV [RWO,RWX]",
            world(&["ReadWriteOnce", "ReadWriteMany"], &[web(DEFAULT, 2)]),
            Nothing,
        ),
        (
            "S10o PV [RWO,ROX]",
            world(&["ReadWriteOnce", "ReadOnlyMany"], &[web(DEFAULT, 2)]),
            Nothing,
        ),
        (
            "S10c PV [RWO], whatever the claim asks",
            rwo(web(DEFAULT, 1)),
            Deadlock,
        ),
        (
            "X1d DaemonSet",
            rwo(Workload::new(Kind::DaemonSet, 0)),
            Stuck,
        ),
        (
            "a StatefulSet, claim in the template",
            rwo(Workload::new(Kind::StatefulSet, 2)),
            Stuck,
        ),
        (
            "X1s scaled from 1 to 2 on Recreate",
            rwo(web(Strategy::Recreate, 2)),
            Stuck,
        ),
        (
            "X1r the claim mounted readOnly, which changes nothing",
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
        ("X12o bound to a static PV [RWO]", static_pv(RWO), Stuck),
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
    let with_room_for_one_more = || {
        let mut workload = web(Strategy::rolling(2, 0), 2).affinity(FIRST);
        workload.hostname_spread = Some(Spread {
            max_skew: 3,
            own_revision: false,
        });
        rwo(workload)
    };
    const ALL: &[usize] = &[0, 1, 2];
    const FIRST_ZONE: &[usize] = &[0, 1];
    let narrowed = |counted, eligible| {
        let mut world = spread(None, SKEW_OF_ONE, &[0, 0, 1]);
        world.workloads[0].selected = NodeSet::of(counted);
        world.workloads[0].tolerated = NodeSet::of(eligible);
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
            "X2u self affinity, node full, surge 0",
            full(Strategy::rolling(0, 1)),
            Nothing,
        ),
        ("X3p preferred self affinity", preferred(DEFAULT), Deadlock),
        (
            "X4 affinity matches other pods too",
            with_other(web(DEFAULT, 2)),
            Deadlock,
        ),
        (
            "X4e so does an empty selector",
            with_other(web(DEFAULT, 2)),
            Deadlock,
        ),
        (
            "X4n and one that looks into other namespaces",
            with_other(web(DEFAULT, 2)),
            Deadlock,
        ),
        (
            "affinity matches other pods that are held by it as well",
            with_other(web(DEFAULT, 2).affinity(BOTH)),
            Nothing,
        ),
        (
            "X5 matchLabelKeys, RollingUpdate",
            own_revision(DEFAULT, 1),
            Deadlock,
        ),
        (
            "X5r matchLabelKeys, Recreate",
            own_revision(Strategy::Recreate, 2),
            Nothing,
        ),
        (
            "X6 self affinity, hostname spread",
            spread(SKEW_OF_ONE, None, &[0, 0, 0]),
            Deadlock,
        ),
        (
            "X6s self affinity, hostname spread with room for one more, a larger surge",
            with_room_for_one_more(),
            Nothing,
        ),
        (
            "X6z self affinity, zone spread, two zones",
            spread(None, SKEW_OF_ONE, &[0, 0, 1]),
            Deadlock,
        ),
        (
            "self affinity, zone spread, one zone",
            spread(None, SKEW_OF_ONE, &[0, 0, 0]),
            Nothing,
        ),
        (
            "X6t self affinity, zone spread, the other zone is tainted",
            narrowed(ALL, FIRST_ZONE),
            Deadlock,
        ),
        // To honour taints is to count the nodes that the pod tolerates, and no others; to ignore the node selector is to
        // count all nodes.
        (
            "X6h self affinity, zone spread that honours taints",
            narrowed(FIRST_ZONE, FIRST_ZONE),
            Nothing,
        ),
        (
            "X6i self affinity, zone spread that ignores the node selector",
            narrowed(ALL, FIRST_ZONE),
            Deadlock,
        ),
    ]
}

/// Where a claim is bound, and where pods are held.
fn places() -> Vec<Row> {
    let zonal = |zones: &[u8], allowed: &[usize], replicas| {
        let mut world = rwo(web(DEFAULT, replicas));
        world.zones = zones.to_vec();
        world.volume.nodes = NodeSet::of(allowed);
        world.volume.binding = Binding::Zonal;
        world
    };
    let reserved = |modes| {
        let mut world = world(modes, &[web(Strategy::Recreate, 2)]);
        world.volume.binding = Binding::Reserved;
        world
    };
    let labelled = || {
        let mut world = rwo(web(DEFAULT, 2));
        world.volume.nodes = NodeSet::of(&[0]);
        world
    };
    let two = |modes| world(modes, &[web(Strategy::Recreate, 2)]);
    let shared = |modes, first, second| world(modes, &[first, second]);
    let recreate = || web(Strategy::Recreate, 1);
    const ALL: &[usize] = &[0, 1, 2];
    vec![
        (
            "Y3 zonal storage, a node a zone",
            zonal(&[0, 1, 2], ALL, 1),
            Nothing,
        ),
        ("Y3r with two replicas", zonal(&[0, 1, 2], ALL, 2), Nothing),
        ("Y3z two nodes in a zone", zonal(&[0, 0], ALL, 1), Deadlock),
        (
            "Y3a only one zone allowed",
            zonal(&[0, 1, 1], &[0], 1),
            Nothing,
        ),
        (
            "Y4 reserved, [RWO,RWX]",
            reserved(&["ReadWriteOnce", "ReadWriteMany"]),
            Nothing,
        ),
        ("Y5 a zone label", labelled(), Nothing),
        ("Y5b a beta zone label", labelled(), Nothing),
        ("Y16 bound to [RWO]", two(RWO), Stuck),
        (
            "Y16d bound to [RWO,RWX]",
            two(&["ReadWriteOnce", "ReadWriteMany"]),
            Nothing,
        ),
        (
            "Y24 one disk of two workloads",
            shared(RWO, recreate(), recreate()),
            Stuck,
        ),
        (
            "Y27 one claim, two local volumes",
            shared(RWO, recreate().on(&[0]), recreate().on(&[1])),
            Stuck,
        ),
        (
            "Y6 one node by two names",
            shared(RWO, recreate().on(&[0]), recreate().on(&[0])),
            Nothing,
        ),
        (
            "Y6o two nodes by one name",
            shared(RWO, recreate().on(&[0]), recreate().on(&[1])),
            Stuck,
        ),
        (
            "Y2 a StatefulSet's claim",
            shared(RWO, Workload::new(Kind::StatefulSet, 1), recreate()),
            Stuck,
        ),
        (
            "Y2c a StatefulSet's claim",
            shared(
                RWO,
                Workload::new(Kind::StatefulSet, 1),
                Workload::new(Kind::Job { completions: 1 }, 1),
            ),
            Stuck,
        ),
        ("Y2o another claim", rwo(recreate()), Nothing),
        (
            "Y14 two replicas",
            rwo(Workload::new(Kind::ReplicaSet, 2)),
            Stuck,
        ),
        (
            "Y14p a pod and a Deployment",
            shared(RWO, Workload::new(Kind::ReplicaSet, 1), recreate()),
            Stuck,
        ),
        (
            "Y17 each pod near itself",
            rwo(Workload::new(Kind::StatefulSet, 2)),
            Stuck,
        ),
        (
            "Y19 nodeName, which no spread forbids",
            rwo(web(DEFAULT, 2).on(&[0])),
            Nothing,
        ),
        (
            "Y19a nodeName, which no affinity forbids",
            shared(RWO, recreate().on(&[0]), recreate().on(&[1])),
            Stuck,
        ),
        (
            "Y20 one node selected",
            rwo(web(DEFAULT, 1).on(&[0])),
            Nothing,
        ),
        (
            "Y21 a node a zone, held in the zone",
            rwo(web(DEFAULT, 1).affinity(FIRST)),
            Nothing,
        ),
        (
            "Y21z two nodes, held in the zone",
            rwo(web(DEFAULT, 1).on(&[0, 1])),
            Deadlock,
        ),
        (
            "Y22 one node has the resource",
            rwo(web(DEFAULT, 1).on(&[0])),
            Nothing,
        ),
    ]
}

/// Ports and other things that no two pods of a node may have.
fn ports() -> Vec<Row> {
    let with_port = |workload| Workload {
        port: true,
        ..workload
    };
    let local = |workload| {
        let mut world = rwo(workload);
        world.volume.attach_required = false;
        world.volume.nodes = NodeSet::of(&[0]);
        world
    };
    let near = |strategy, replicas| with_port(web(strategy, replicas).affinity(FIRST));
    let one_node = |workload: Workload| {
        let mut world = rwo(workload);
        world.zones = vec![0];
        world
    };
    let apart = |mut workload: Workload| {
        workload.anti_affinity = true;
        workload
    };
    let spread = |mut workload: Workload| {
        workload.hostname_spread = SKEW_OF_ONE;
        workload
    };
    vec![
        ("Y10 self affinity", rwo(near(DEFAULT, 1)), Deadlock),
        (
            "Y10p one node selected",
            rwo(with_port(web(DEFAULT, 1).on(&[0]))),
            Deadlock,
        ),
        ("Y10n the node's network", rwo(near(DEFAULT, 1)), Deadlock),
        (
            "Y10o one node",
            one_node(with_port(web(DEFAULT, 1))),
            Deadlock,
        ),
        (
            "Y10z surge 0",
            rwo(near(Strategy::rolling(0, 1), 1)),
            Nothing,
        ),
        ("Y10r two replicas", rwo(near(Strategy::Recreate, 2)), Stuck),
        (
            "Y10k scaled to two",
            rwo(near(Strategy::Recreate, 2)),
            Stuck,
        ),
        (
            "Y11 one node, anti-affinity",
            rwo(apart(web(DEFAULT, 1).on(&[0]))),
            Deadlock,
        ),
        (
            "Y12 a local volume, anti-affinity",
            local(apart(web(DEFAULT, 1))),
            Deadlock,
        ),
        (
            "Y12s a local volume, spread",
            local(spread(web(DEFAULT, 1))),
            Deadlock,
        ),
        (
            "Y12p a local volume, a port",
            local(with_port(web(DEFAULT, 1))),
            Deadlock,
        ),
        (
            "Y12r two replicas",
            local(with_port(web(Strategy::Recreate, 2))),
            Stuck,
        ),
    ]
}

/// Pods that end, or never begin.
fn ends() -> Vec<Row> {
    let job = |pods| Workload::new(Kind::Job { completions: pods }, pods);
    vec![
        ("Y7 two pods that end", rwo(job(2)), Delay),
        ("Y7o two pods that end, RWOP", rwop(job(2)), Nothing),
        (
            "two workloads that end share a claim",
            world(RWO, &[job(1), job(1)]),
            Delay,
        ),
        ("Y8 no pods", rwo(job(0)), Nothing),
        ("Y8u resumed", rwo(job(2)), Delay),
        (
            "Y8c beside a workload without pods",
            rwo(web(Strategy::Recreate, 1)),
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
            "S7u RWOP, surge 0, unavailable 1",
            rwop(web(Strategy::rolling(0, 1), 1)),
            Nothing,
        ),
        (
            "S7r RWOP, Recreate",
            rwop(web(Strategy::Recreate, 1)),
            Nothing,
        ),
        ("X7s RWOP, attachRequired: false", no_attach, Deadlock),
        (
            "X7n RWOP, one node",
            rwop(web(DEFAULT, 1).on(&[0])),
            Deadlock,
        ),
        ("X7l RWOP, node-local volume", local, Deadlock),
        (
            "X7a RWOP, self affinity",
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
            "X1t two Deployments share a claim",
            both(RWO, web(DEFAULT, 1), web(DEFAULT, 1)),
            Stuck,
        ),
        (
            "an app and its backup Job share a claim",
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
            "a backup follows an app on Recreate",
            both(RWO, web(Strategy::Recreate, 1), backup.affinity(FIRST)),
            Delay,
        ),
        (
            "X11s each follows itself",
            both(
                RWO,
                single(web(DEFAULT, 1)),
                web(DEFAULT, 1).affinity(SECOND),
            ),
            Stuck,
        ),
        (
            "X11h pinned to two hosts",
            both(RWO, web(DEFAULT, 1).on(&[0]), web(DEFAULT, 1).on(&[1])),
            Stuck,
        ),
        (
            "X11w each waits for the other",
            both(
                RWO,
                web(Strategy::Recreate, 1).affinity(SECOND),
                web(Strategy::Recreate, 1).affinity(FIRST),
            ),
            Stuck,
        ),
        (
            "X11b one follows the other, which follows both",
            both(
                RWO,
                web(DEFAULT, 1).affinity(BOTH),
                web(DEFAULT, 1).affinity(FIRST),
            ),
            Nothing,
        ),
        (
            "two Deployments pinned to the same host",
            both(RWO, web(DEFAULT, 1).on(&[1]), web(DEFAULT, 1).on(&[1])),
            Nothing,
        ),
        (
            "two Deployments pinned together",
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
