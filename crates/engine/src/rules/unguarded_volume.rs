//! Pods share a volume that Kubernetes does not guard, and its driver refuses the second use or lets both write.
//!
//! # Fires on
//!
//! Pods that use a ReadWriteOnce volume whose driver does not attach (`attachRequired: false`), if
//! the catalog knows the driver's behaviour:
//!
//! * It refuses a second mount of a file system, even on the same node (OpenEBS LVM and ZFS
//!   without `shared: "yes"` in the class). The outcome is `deadlock` for a rolling update that
//!   may not stop the old pod first, and `stuck` for several replicas and for workloads that share
//!   the claim.
//! * It refuses a second node (Portworx, cStor): the same if the pods may be on two.
//! * It lets a second node in, on a block device with a file system (iSCSI): `data-loss` if two
//!   pods may be on two nodes at once, as in each rolling update.
//!
//! Pods that end wait for each other: `delay`, if the driver refuses.
//!
//! # Why
//!
//! Without attachment there is no Multi-Attach error: Kubernetes starts every pod, and the rest is
//! up to the driver. One answers `device already mounted at …` and the pod stays in
//! `ContainerCreating`; another mounts one ext4 on two nodes, and the file system is damaged.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: search}
//! spec:
//!   replicas: 1 # RollingUpdate by default: two pods at a time during a rollout
//!   template:
//!     spec:
//!       volumes:
//!       - name: index
//!         persistentVolumeClaim: {claimName: index}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: index}
//! spec: {accessModes: [ReadWriteOnce], storageClassName: zfs}
//! ---
//! apiVersion: storage.k8s.io/v1
//! kind: StorageClass
//! metadata: {name: zfs}
//! provisioner: zfs.csi.openebs.io
//! ```
//!
//! # What to do
//!
//! Use one replica and `strategy: {type: Recreate}`. On one node, OpenEBS volumes can be
//! shared with the class parameter `shared: "yes"`. Or use storage that is attached, or
//! shared files.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: not read, because each is for one pod.
//!
//! # Silent on
//!
//! Shared files (NFS, EFS), drivers that the catalog says nothing about, raw block devices
//! where only file systems are refused or damaged, and Recreate with one replica.

use hashbrown::HashSet;

use super::{Hazard, On, Outcome, Rule, Scaling, messages, strategies};
use crate::analysis::{Analysis, AttachConstraint, ByDriver, UsedVolume, users};
use crate::model::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    code: "unguarded-volume",
    at_fault: "nothing keeps a second pod from the volume",
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    for (volume, driver) in by_driver(analysis) {
        if let Some(reaction) = reaction(driver) {
            let clashes = clashes(analysis, volume, driver);
            found.extend(clashes.map(|clash| hazard(volume, driver, reaction, clash)));
        }
    }
}

fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    let analysis = &scaling.analysis;
    if analysis.workload.replicas <= scaling.before.max(1) {
        return;
    }
    for (volume, driver) in by_driver(analysis) {
        if let Some(reaction) = reaction(driver)
            && let Some(clash) = replicas(analysis, driver)
        {
            found.push(Hazard {
                field_path: scaling.field(),
                ..hazard(volume, driver, reaction, clash)
            });
        }
    }
}

/// The volumes that only the driver guards, each once; none if there are no pods.
pub(super) fn by_driver<'s>(
    analysis: &'s Analysis<'_>,
) -> impl Iterator<Item = (&'s UsedVolume, ByDriver)> {
    let mut reported = HashSet::new();
    let has_pods = analysis.workload.has_pods();
    analysis.volumes.iter().filter(move |_| has_pods).filter_map(move |volume| {
        match volume.attach_constraint {
            AttachConstraint::Driver(driver) if reported.insert(volume.shown_name()) => {
                Some((volume, driver))
            }
            _ => None,
        }
    })
}

/// A situation in which two pods use one volume at the same time, and the advice.
pub(super) struct Clash {
    pub(super) outcome: Outcome,
    pub(super) field: String,
    pub(super) excess: i64,
    /// The facts seen, as part of a sentence.
    pub(super) seen: String,
    /// The consequence if the driver refuses.
    pub(super) refused: &'static str,
    pub(super) advice: &'static str,
    pub(super) brief: &'static str,
}

/// Every clash over `volume` to which `driver` reacts.
pub(super) fn clashes(
    analysis: &Analysis<'_>,
    volume: &UsedVolume,
    driver: ByDriver,
) -> impl Iterator<Item = Clash> {
    [rollout(analysis, driver), replicas(analysis, driver), others(analysis, volume, driver)]
        .into_iter()
        .flatten()
}

/// The clash of the old and the new pod of a rollout.
fn rollout(analysis: &Analysis<'_>, driver: ByDriver) -> Option<Clash> {
    let workload = analysis.workload;
    let room = analysis.rolling_update();
    let is_clash = match driver {
        ByDriver::RefusesSecondMount => analysis.starts_before_it_stops(),
        _ if analysis.pins_rollouts() => false,
        // A new pod starts while the old one is ending, whatever the surge is.
        ByDriver::AdmitsSecondNode => room.is_some(),
        _ => room.is_some_and(|room| analysis.rolling_update_deadlocks(room)),
    };
    let name = strategies::name(workload);
    is_clash.then(|| Clash {
        outcome: Outcome::Deadlock,
        field: strategies::field(workload).to_owned(),
        excess: 0,
        seen: format!("{name} starts the new pod while the old one runs"),
        refused: "the new pod never gets ready, so the rollout never ends",
        advice: match (workload.kind, driver) {
            (WorkloadKind::Deployment | WorkloadKind::DeploymentConfig, _) => {
                match workload.replicas {
                    2.. => "Use one replica, and set spec.strategy to Recreate",
                    _ => "Set spec.strategy to Recreate",
                }
            }
            (_, ByDriver::AdmitsSecondNode) => "Scale to 0 before the update",
            _ => strategies::stop_first(analysis),
        },
        brief: match (workload.kind, driver) {
            (WorkloadKind::Deployment | WorkloadKind::DeploymentConfig, _) => "use Recreate",
            (_, ByDriver::AdmitsSecondNode) => "scale to 0 first",
            _ => strategies::in_brief(analysis),
        },
    })
}

/// The clash of the pods of one workload.
fn replicas(analysis: &Analysis<'_>, driver: ByDriver) -> Option<Clash> {
    let pods = analysis.pods();
    if pods <= 1 || driver != ByDriver::RefusesSecondMount && analysis.holds_replicas_together() {
        return None;
    }
    let ends = analysis.workload.ends();
    let refused = if ends {
        "the others wait until the first has ended"
    } else {
        "all but the first stay in ContainerCreating"
    };
    Some(Clash {
        outcome: Outcome::of_waiting(ends),
        field: analysis.workload.kind.pods_field().to_owned(),
        excess: messages::excess_pods(analysis),
        seen: format!("{pods} pods are wanted"),
        refused,
        advice: "Use one pod, or a volume of its own for each",
        brief: "use one pod",
    })
}

/// The clash of the pods of the workload and of others.
fn others(analysis: &Analysis<'_>, volume: &UsedVolume, driver: ByDriver) -> Option<Clash> {
    let claim = volume.claim.as_deref()?;
    let others = if driver == ByDriver::RefusesSecondMount {
        users::others(analysis, claim)
    } else {
        users::apart(analysis, claim, volume)
    };
    if others.is_empty() {
        return None;
    }
    let end = analysis.workload.ends() && others.iter().all(|other| other.ends());
    let refused = if end {
        "the later one waits until the first has ended"
    } else {
        "the later one stays in ContainerCreating"
    };
    let names = messages::names_of(&others);
    Some(Clash {
        outcome: Outcome::of_waiting(end),
        field: analysis.volume_path(volume),
        excess: i64::try_from(names.len()).unwrap_or(i64::MAX),
        seen: format!("{} uses it too", messages::some(names)),
        refused,
        advice: "Give each workload a claim of its own",
        brief: "others use it too",
    })
}

/// How a driver that does not attach reacts to a second pod, as part of a sentence and in short;
/// `None` for other drivers.
const fn reaction(driver: ByDriver) -> Option<[&'static str; 2]> {
    Some(match driver {
        ByDriver::RefusesSecondMount => {
            ["refuses a second mount, even on the same node", "refuses a second mount"]
        }
        ByDriver::RefusesSecondNode => {
            ["refuses to mount it on a second node", "refuses a second node"]
        }
        ByDriver::AdmitsSecondNode => {
            ["does not attach volumes, so nothing keeps a second node away", "lets two nodes write"]
        }
        ByDriver::CannotShare(_) | ByDriver::RefusesModes(_) | ByDriver::NeverAttached => {
            return None;
        }
    })
}

fn hazard(volume: &UsedVolume, reacts: ByDriver, [does, brief]: [&str; 2], clash: Clash) -> Hazard {
    let volumes = messages::volumes(std::iter::once(volume));
    let (name, driver) = (messages::quoted(volume), &volume.driver);
    let (outcome, result) = match reacts {
        ByDriver::AdmitsSecondNode => {
            (Outcome::DataLoss, "two nodes may write to one file system, which damages it")
        }
        _ => (clash.outcome, clash.refused),
    };
    let seen = &clash.seen;
    Hazard {
        field_path: clash.field,
        volumes: vec![volume.shown_name().clone()],
        excess: clash.excess,
        what: format!("{volumes}, and {driver} {does}; {seen}, so {result}."),
        advice: format!("{}.", clash.advice),
        brief: format!("{name}: {driver} {brief}; {}", clash.brief),
        ..RULE.hazard(outcome)
    }
}
