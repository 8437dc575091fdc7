//! The claim to migrate: its volume, which nodes have it, and who uses it.

use super::error::MigrationBlocked;
use super::users::{Stranger, User};
use super::{CopyBy, MigrationInput, Wanted};
use engine::model::Text;
use engine::model::access_mode::{AccessModes, VolumeMode};
use engine::model::claim::Claim;
use engine::model::labels::Labels;
use engine::model::quantity::Quantity;
use engine::model::volume::{Volume, VolumeSource};
use engine::model::workload::{Workload, WorkloadKind};
use engine::observed::{NodeState, Pod};
use engine::snapshot::Lookup;

/// The claim, and what belongs to it.
pub(super) struct Subject<'a> {
    pub(super) claim: &'a Claim,
    pub(super) volume: Option<&'a Volume>,
    /// The volume's driver; empty where it is not known.
    pub(super) driver: Text,
    /// What the new claim has to ask for.
    pub(super) size: Quantity,
    /// The node that has the volume.
    pub(super) node: Option<&'a NodeState>,
    /// The workloads that use it and that nothing else manages.
    pub(super) users: Vec<User<'a>>,
    /// What else has pods that use it.
    pub(super) strangers: Vec<Stranger>,
}

impl<'a> Subject<'a> {
    /// The claim that is wanted, if there is a way for it.
    pub(super) fn of(
        wanted: Wanted<'_>,
        facts: MigrationInput<'a>,
    ) -> Result<Self, MigrationBlocked> {
        let claim = found(wanted, facts)?;
        let view = facts.cluster.objects.view;
        let named = claim.spec.volume_name.as_str();
        let volume = view
            .volume(named)
            .found()
            .or_else(|| view.volume_of(&claim.metadata));
        if named.is_empty() && volume.is_none() && wanted.copy != CopyBy::Nothing {
            return Err(MigrationBlocked::NotBound(wanted.claim.to_owned()));
        }
        let pods: Vec<&Pod> = pods_with(wanted, facts).collect();
        let mut workloads = view.workloads_using(wanted.namespace, wanted.claim);
        workloads.retain(|workload| !workload.finished && !workload.metadata.deleting);
        let mut users: Vec<User<'a>> = workloads
            .iter()
            .filter(|workload| workload.metadata.controller.is_none())
            .map(|workload| User::of(workload, wanted.claim, facts))
            .collect();
        users.sort_by_key(|user| (user.kind().name(), user.workload.metadata.name.clone()));
        let strangers = Stranger::among(&pods, &workloads);
        let requested = claim.spec.resources.requests.storage;
        Ok(Self {
            driver: volume.map_or_else(Text::default, driver),
            size: volume.map_or(requested, |it| requested.max(it.spec.capacity.storage)),
            node: node(volume, &pods, facts),
            claim,
            volume,
            users,
            strangers,
        })
    }

    /// The access modes that the claim has.
    pub(super) const fn modes(&self) -> AccessModes {
        self.claim.spec.access_modes
    }

    /// The name of the volume; empty where it is not bound.
    pub(super) fn volume_name(&self) -> &str {
        self.volume.map_or_else(
            || self.claim.spec.volume_name.as_str(),
            |volume| volume.metadata.name.as_str(),
        )
    }

    /// Whether anything has to be stopped for the copy.
    pub(super) fn is_used(&self) -> bool {
        !self.users.is_empty() || !self.strangers.is_empty()
    }
}

/// The claim, unless nobody can migrate it.
fn found<'a>(wanted: Wanted<'_>, facts: MigrationInput<'a>) -> Result<&'a Claim, MigrationBlocked> {
    let name = || wanted.claim.to_owned();
    let claim = match facts
        .cluster
        .objects
        .view
        .claim(wanted.namespace, wanted.claim)
    {
        Lookup::Found(claim) => claim,
        missing => {
            let unread = facts.cluster.observed.unread("persistentvolumeclaims");
            return Err(match (missing, unread) {
                (Lookup::NotSynced, Some(unread)) => MigrationBlocked::ClaimsUnread {
                    namespace: wanted.namespace.to_owned(),
                    reason: unread.reason.clone(),
                },
                _ => MigrationBlocked::NoClaim {
                    claim: name(),
                    namespace: wanted.namespace.to_owned(),
                },
            });
        }
    };
    if claim.metadata.deleting {
        return Err(MigrationBlocked::Deleting(name()));
    }
    if claim.spec.access_modes.contains(wanted.mode) {
        return Err(MigrationBlocked::HasMode {
            claim: name(),
            mode: wanted.mode,
        });
    }
    if let Some((set, template)) = claim_template(wanted, facts) {
        return Err(MigrationBlocked::ClaimTemplate {
            claim: name(),
            set: set.metadata.name.to_string(),
            template: template.to_string(),
        });
    }
    if let Some(owner) = &claim.metadata.controller {
        return Err(MigrationBlocked::Owned {
            claim: name(),
            kind: owner.kind.to_string(),
            name: owner.name.to_string(),
        });
    }
    if claim.spec.volume_mode == VolumeMode::Block && wanted.copy == CopyBy::Job {
        return Err(MigrationBlocked::Block(name()));
    }
    Ok(claim)
}

/// The StatefulSet that makes the claim, or did when it had more replicas, and the claim
/// template's name.
fn claim_template<'a>(
    wanted: Wanted<'_>,
    facts: MigrationInput<'a>,
) -> Option<(&'a Workload, &'a Text)> {
    let (stem, ordinal) = wanted.claim.rsplit_once('-')?;
    ordinal.parse::<u32>().ok()?;
    let mut found = None;
    let view = facts.cluster.objects.view;
    view.visit_workloads(
        Some(wanted.namespace),
        &Labels::default(),
        &mut |workload| {
            if workload.kind == WorkloadKind::StatefulSet {
                found = workload
                    .template_of_stem(stem)
                    .map(|template| (workload, &template.metadata.name));
            }
            found.is_none()
        },
    );
    found
}

/// The pods that use the claim, or will.
fn pods_with<'a>(wanted: Wanted<'_>, facts: MigrationInput<'a>) -> impl Iterator<Item = &'a Pod> {
    facts.cluster.observed.pods.iter().filter(move |pod| {
        pod.meta.namespace == wanted.namespace
            && pod.claims.iter().any(|claim| claim == wanted.claim)
            && !matches!(pod.phase.as_str(), "Succeeded" | "Failed")
    })
}

fn driver(volume: &Volume) -> Text {
    match &volume.spec.source {
        VolumeSource::Csi(driver) => driver.clone(),
        VolumeSource::InTree(in_tree) => in_tree.provisioner.into(),
        VolumeSource::Unknown => Text::default(),
    }
}

/// The node that has the volume: by its attachment, or by the pods that use it.
fn node<'a>(
    volume: Option<&Volume>,
    pods: &[&'a Pod],
    facts: MigrationInput<'a>,
) -> Option<&'a NodeState> {
    let observed = facts.cluster.observed;
    let name = volume.map(|it| &it.metadata.name);
    let mut attachments = observed.attachments.iter();
    let attached =
        attachments.find(|it| it.attached && it.meta.deleted.is_none() && Some(&it.volume) == name);
    let mut living = pods.iter().filter(|pod| pod.is_living());
    let name = match attached {
        Some(attached) => &attached.node,
        None => living.next()?.node.as_ref()?,
    };
    observed.nodes.iter().find(|node| node.name == *name)
}
