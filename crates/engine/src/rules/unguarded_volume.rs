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
//!         persistentVolumeClaim: {claimName: index} # provisioner zfs.csi.openebs.io
//! ```
//!
//! # What to do
//!
//! Use one replica and `strategy: {type: Recreate}`. On one node, OpenEBS volumes can be
//! shared with the class parameter `shared: "yes"`. Or use storage that is attached, or
//! shared files.
//!
//! # Silent on
//!
//! Shared files (NFS, EFS), drivers that the catalog says nothing about, raw block devices
//! where only file systems are refused or damaged, and Recreate with one replica.

use std::collections::HashSet;

use super::{Hazard, On, Outcome, Rule, Scaling, messages, strategies};
use crate::analysis::{Analysis, AttachConstraint, ByDriver, UsedVolume, users};
use crate::model::workload::{Workload, WorkloadKind};

pub(super) const RULE: Rule = Rule {
    code: "unguarded-volume",
    at_fault: "nothing keeps a second pod from the volume",
    on: &[On::Workload(judge), On::Scaled(judge_scaled)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    for (volume, driver) in by_driver(analysis) {
        if let Some(words) = Words::of(driver) {
            found.extend(
                clashes(analysis, volume, driver).map(|it| words.hazard(analysis, volume, &it)),
            );
        }
    }
}

fn judge_scaled(scaling: &Scaling<'_>, found: &mut Vec<Hazard>) {
    let analysis = &scaling.analysis;
    if analysis.workload.replicas <= scaling.before.max(1) {
        return;
    }
    for (volume, driver) in by_driver(analysis) {
        if let Some(words) = Words::of(driver)
            && let Some(clash) = replicas(analysis, driver)
        {
            let field = match scaling.autoscaler {
                Some(_) => "spec.maxReplicas",
                None => "spec.replicas",
            };
            found.push(Hazard {
                field_path: field.to_owned(),
                ..words.hazard(analysis, volume, &clash)
            });
        }
    }
}

/// The volumes that only the driver guards, each once.
pub(super) fn by_driver<'s>(
    analysis: &'s Analysis<'_>,
) -> impl Iterator<Item = (&'s UsedVolume, ByDriver)> {
    let mut reported = HashSet::new();
    let volumes = analysis.volumes.iter();
    volumes.filter_map(move |volume| match volume.attach_constraint {
        AttachConstraint::Driver(driver) if reported.insert(volume.shown_name()) => {
            Some((volume, driver))
        }
        _ => None,
    })
}

/// Two pods that use one volume at the same time.
pub(super) enum Clash<'a> {
    /// The old and the new pod of a rollout.
    Rollout,
    /// The pods of one workload.
    Replicas(i64),
    /// The pods of the workload and of these others.
    Others(Vec<&'a Workload>),
}

/// Every clash over `volume` to which `driver` reacts.
pub(super) fn clashes<'a>(
    analysis: &Analysis<'a>,
    volume: &UsedVolume,
    driver: ByDriver,
) -> impl Iterator<Item = Clash<'a>> {
    let has_pods = analysis.workload.has_pods();
    let others = has_pods.then(|| others(analysis, volume, driver));
    rollout(analysis, driver)
        .then_some(Clash::Rollout)
        .into_iter()
        .chain(replicas(analysis, driver))
        .chain(others.flatten())
}

/// Whether the driver refuses pods on one node as well.
fn is_refused_on_one_node(driver: ByDriver) -> bool {
    driver == ByDriver::RefusesSecondMount
}

fn rollout(analysis: &Analysis<'_>, driver: ByDriver) -> bool {
    if is_refused_on_one_node(driver) {
        return analysis.starts_before_it_stops();
    }
    let together = analysis.pins_rollouts();
    match driver {
        // A new pod starts while the old one is ending, whatever the surge is.
        ByDriver::AdmitsSecondNode => !together && analysis.rolling_update().is_some(),
        _ => (analysis.rolling_update())
            .is_some_and(|room| !together && analysis.rolling_update_deadlocks(room)),
    }
}

fn replicas<'a>(analysis: &Analysis<'_>, driver: ByDriver) -> Option<Clash<'a>> {
    let pods = analysis.pods();
    let clash = is_refused_on_one_node(driver) || !analysis.holds_replicas_together();
    (pods > 1 && clash).then_some(Clash::Replicas(pods))
}

fn others<'a>(analysis: &Analysis<'a>, volume: &UsedVolume, driver: ByDriver) -> Option<Clash<'a>> {
    let claim = volume.claim.as_deref()?;
    let others = if is_refused_on_one_node(driver) {
        users::others(analysis, claim)
    } else {
        users::apart(analysis, claim, volume)
    };
    (!others.is_empty()).then_some(Clash::Others(others))
}

/// The message about a driver that does not attach.
struct Words {
    /// The driver's reaction to a second pod, as part of a sentence.
    does: &'static str,
    /// The reaction in short.
    brief: &'static str,
    /// The outcome, if the situation does not decide it.
    damage: Option<(Outcome, &'static str)>,
}

impl Words {
    const fn of(driver: ByDriver) -> Option<Self> {
        Some(match driver {
            ByDriver::RefusesSecondMount => Self {
                does: "refuses a second mount, even on the same node",
                brief: "refuses a second mount",
                damage: None,
            },
            ByDriver::RefusesSecondNode => Self {
                does: "refuses to mount it on a second node",
                brief: "refuses a second node",
                damage: None,
            },
            ByDriver::AdmitsSecondNode => Self {
                does: "does not attach volumes, so nothing keeps a second node away",
                brief: "lets two nodes write",
                damage: Some((
                    Outcome::DataLoss,
                    "two nodes may write to one file system, which damages it",
                )),
            },
            ByDriver::CannotShare(_) | ByDriver::RefusesModes(_) | ByDriver::NeverAttached => {
                return None;
            }
        })
    }

    fn hazard(&self, analysis: &Analysis<'_>, volume: &UsedVolume, clash: &Clash<'_>) -> Hazard {
        let volumes = messages::volumes(std::iter::once(volume));
        let (driver, does) = (&volume.driver, self.does);
        let scene = Scene::of(analysis, volume, clash);
        let (outcome, result) = self.damage.unwrap_or((scene.outcome, scene.refused));
        Hazard {
            field_path: scene.field,
            volumes: vec![volume.shown_name().clone()],
            excess: scene.excess,
            what: format!(
                "{volumes}, and {driver} {does}; {}, so {result}.",
                scene.seen
            ),
            advice: format!("{}.", scene.advice),
            brief: format!(
                "{}: {driver} {}; {}",
                messages::quoted(volume),
                self.brief,
                scene.brief
            ),
            ..RULE.hazard(outcome)
        }
    }
}

/// The situation in which two pods use one volume, and the advice.
pub(super) struct Scene {
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

impl Scene {
    pub(super) fn of(analysis: &Analysis<'_>, volume: &UsedVolume, clash: &Clash<'_>) -> Self {
        let workload = analysis.workload;
        match clash {
            Clash::Rollout => Self {
                outcome: Outcome::Deadlock,
                field: strategies::field(workload).to_owned(),
                excess: 0,
                seen: format!(
                    "{} starts the new pod while the old one runs",
                    strategies::name(workload)
                ),
                refused: "the new pod never gets ready, so the rollout never ends",
                advice: match (workload.kind, workload.replicas) {
                    (WorkloadKind::DaemonSet, _) => "Set maxSurge to 0 in spec.updateStrategy",
                    (WorkloadKind::StatefulSet, _) => "Scale to 0 before the update",
                    (WorkloadKind::Rollout | WorkloadKind::CloneSet, _) => {
                        strategies::stop_first(workload)
                    }
                    (_, 2..) => "Use one replica, and set spec.strategy to Recreate",
                    _ => "Set spec.strategy to Recreate",
                },
                brief: match workload.kind {
                    WorkloadKind::Rollout | WorkloadKind::CloneSet => "use maxSurge 0",
                    _ => "use Recreate",
                },
            },
            Clash::Replicas(pods) => Self {
                outcome: if workload.ends() {
                    Outcome::Delay
                } else {
                    Outcome::Stuck
                },
                field: messages::pods_field(workload.kind).to_owned(),
                excess: messages::excess_pods(analysis),
                seen: format!("{pods} pods are wanted"),
                refused: if workload.ends() {
                    "the others wait until the first has ended"
                } else {
                    "all but the first stay in ContainerCreating"
                },
                advice: "Use one pod, or a volume of its own for each",
                brief: "use one pod",
            },
            Clash::Others(others) => Self::of_others(analysis, volume, others),
        }
    }

    fn of_others(analysis: &Analysis<'_>, volume: &UsedVolume, others: &[&Workload]) -> Self {
        let passing = analysis.workload.ends() && others.iter().all(|it| it.ends());
        let names = messages::names_of(others);
        Self {
            outcome: if passing {
                Outcome::Delay
            } else {
                Outcome::Stuck
            },
            field: analysis.volume_path(volume),
            excess: i64::try_from(names.len()).unwrap_or(i64::MAX),
            seen: format!("{} uses it too", messages::some(names)),
            refused: if passing {
                "the later one waits until the first has ended"
            } else {
                "the later one stays in ContainerCreating"
            },
            advice: "Give each workload a claim of its own",
            brief: "others use it too",
        }
    }
}
