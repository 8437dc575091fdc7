//! The volumes that a workload uses, and their attach constraints.

use super::Facts;
use super::attach_constraint::{AttachConstraint, Basis, ByDriver, Grounds, Missing};
use super::binding::{class_of, fitting};
use super::eligibility::only_host;
use super::mislabelled::mislabelled;
use super::topology::reach;
use crate::model::Text;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::claim::Claim;
use crate::model::in_tree::{InTreeType, Inline, csi_driver_of};
use crate::model::node::NodeSelector;
use crate::model::pod::{PodVolume, PodVolumeSource};
use crate::model::storage_class::{NO_PROVISIONER, StorageClass};
use crate::model::volume::{Volume, VolumeSource};
use crate::model::workload::Workload;
use crate::storage::{self, Attach, AttachSource, NodeLocal, Reach, SecondUse};

/// A volume of a pod template, with the facts that are known about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedVolume {
    /// Its place in the pod's `volumes`.
    pub index: usize,
    /// Its name in the pod.
    pub name: Text,
    /// The claim's name, for volumes that come through a claim.
    pub claim: Option<Text>,
    /// The constraint that keeps it on one node or in one pod.
    pub attach_constraint: AttachConstraint,
    /// The access modes that count: the bound volume's, or the requested ones.
    pub modes: AccessModes,
    /// The driver, provisioner or in-tree type, as messages show it.
    pub driver: Text,
    /// The nodes that can reach it, if that is limited.
    pub reach: Option<NodeSelector>,
    /// Whether it lives on one node and keeps its pods there.
    pub stays_on_its_node: bool,
    /// Whether it will be created in a zone that is not known yet and that its pods cannot leave.
    pub stays_in_its_zone: bool,
    /// Whether the scheduler allows one pod with it per node, so that co-locating pods does not
    /// help (inline disks only).
    pub one_pod_a_node: bool,
}

impl UsedVolume {
    /// Whether nodes must be examined because of it.
    pub(crate) fn may_hold_a_node(&self) -> bool {
        !matches!(self.attach_constraint, AttachConstraint::Free)
            || self.one_pod_a_node
            || self.keeps_its_node()
    }

    /// Whether it attaches to one node at a time.
    pub(crate) const fn is_exclusive(&self) -> bool {
        matches!(self.attach_constraint, AttachConstraint::Exclusive { .. })
    }

    /// Whether it keeps its pods on one node, exclusive or not.
    pub fn keeps_its_node(&self) -> bool {
        self.stays_on_its_node || self.reach.as_ref().and_then(only_host).is_some()
    }

    /// The grounds on which it is known to be attached; `None` for volumes for which that does not
    /// matter.
    pub(crate) const fn grounds(&self) -> Option<&Grounds> {
        match &self.attach_constraint {
            AttachConstraint::Exclusive { grounds, .. } => Some(grounds),
            _ => None,
        }
    }

    /// The name that messages use: the claim's, or the volume's own.
    pub fn shown_name(&self) -> &Text {
        self.claim.as_ref().unwrap_or(&self.name)
    }
}

/// Every volume of the workload's pods, in the order of the template. Volumes from a StatefulSet's
/// own claim templates are not among them, because each pod has its own.
pub fn of(workload: &Workload, facts: Facts<'_>) -> Vec<UsedVolume> {
    workload
        .template
        .volumes
        .iter()
        .filter(|volume| {
            let mut own = workload.claim_templates.iter();
            own.all(|claim| claim.metadata.name != volume.name)
        })
        .map(|volume| {
            let mut used = used(volume, &workload.metadata.namespace, facts);
            // The kubelet does not wait for a volume that no container mounts. The scheduler counts
            // it all the same.
            if !volume.mounted && used.attach_constraint != AttachConstraint::SinglePod {
                used.attach_constraint = AttachConstraint::Free;
            }
            used
        })
        .collect()
}

/// The claim `name`, as a pod of `namespace` uses it.
pub fn of_claim(name: &str, namespace: &str, facts: Facts<'_>) -> UsedVolume {
    let volume = PodVolume {
        index: 0,
        name: name.into(),
        source: PodVolumeSource::Claim { name: name.into() },
        mounted: true,
        selinux_label: None,
    };
    used(&volume, namespace, facts)
}

/// The claim `name`, which a StatefulSet makes from `template` for one of its pods.
pub(crate) fn of_template(
    name: &str,
    template: &Claim,
    namespace: &str,
    facts: Facts<'_>,
) -> UsedVolume {
    let mut found = of_claim(name, namespace, facts);
    found.name.clone_from(&template.metadata.name);
    if let AttachConstraint::Unknown(Missing::Claim(_)) = found.attach_constraint {
        found.attach_constraint = AttachConstraint::Free;
        return claimed(template, found, facts);
    }
    found
}

fn used(volume: &PodVolume, namespace: &str, facts: Facts<'_>) -> UsedVolume {
    let named = UsedVolume {
        index: volume.index,
        name: volume.name.clone(),
        ..UsedVolume::default()
    };
    match &volume.source {
        PodVolumeSource::Claim { name } => {
            let named = UsedVolume {
                claim: Some(name.clone()),
                ..named
            };
            let absence = match facts.view.claim(namespace, name).known() {
                Ok(claim) => return claimed(claim, named, facts),
                Err(absence) => absence,
            };
            // A StatefulSet, or a bare pod with an ephemeral volume, will have it made from its
            // template.
            let users = facts.view.workloads_using(namespace, name);
            match users.into_iter().find_map(|user| {
                let template = user.template_of_claim(name);
                template.or_else(|| user.ephemeral_claim(name))
            }) {
                Some(template) => claimed(template, named, facts),
                None => unknown(Missing::Claim(absence), named),
            }
        }
        PodVolumeSource::Inline { in_tree, read_only } => inline(in_tree, *read_only, named, facts),
    }
}

/// A volume that the pod template defines itself. Kubernetes invents access modes for the types
/// that it hands to a CSI driver, and checks no others.
fn inline(
    in_tree: &'static InTreeType,
    read_only: bool,
    named: UsedVolume,
    facts: Facts<'_>,
) -> UsedVolume {
    let Inline {
        access_modes,
        one_pod_a_node,
    } = in_tree.inline(read_only);
    let modes = if access_modes.contains(AccessMode::ReadWriteOnce) {
        access_modes
    } else {
        AccessModes::EMPTY
    };
    let attach = attach_in_tree(in_tree, facts);
    UsedVolume {
        attach_constraint: attach_constraint(modes, attach, Basis::Inline, facts),
        modes,
        driver: csi_driver_of(in_tree.provisioner).into(),
        one_pod_a_node,
        ..named
    }
}

fn unknown(missing: Missing, named: UsedVolume) -> UsedVolume {
    UsedVolume {
        attach_constraint: AttachConstraint::Unknown(missing),
        ..named
    }
}

fn claimed(claim: &Claim, named: UsedVolume, facts: Facts<'_>) -> UsedVolume {
    // The scheduler reads the claim, not the volume (its VolumeRestrictions plugin).
    let modes = claim.spec.access_modes;
    if modes.contains(AccessMode::ReadWriteOncePod) {
        return UsedVolume {
            attach_constraint: AttachConstraint::SinglePod,
            modes,
            driver: class_of(claim, facts)
                .map_or_else(|_| Text::default(), |class| class.driver().into()),
            ..named
        };
    }
    if !claim.spec.volume_name.is_empty() {
        let name = &claim.spec.volume_name;
        let absence = match facts.view.volume(name).known() {
            Ok(volume) => return persistent(volume, claim, Basis::Bound, named, facts),
            Err(absence) => absence,
        };
        let missing = Missing::Volume(name.clone(), absence);
        if claim.status.access_modes.is_empty() {
            return unknown(missing, named);
        }
        let found = by_class(claim, class_of(claim, facts).ok(), named, facts);
        return match found.attach_constraint {
            AttachConstraint::Unknown(_) => unknown(missing, found),
            _ => found,
        };
    }
    let class = class_of(claim, facts);
    let known = class.as_ref().ok().copied();
    let named_class = claim.class().unwrap_or_default();
    let class_name = known.map_or(named_class, |class| class.metadata.name.as_str());
    if let Some(volume) = fitting(claim, known, class_name, facts) {
        return persistent(volume, claim, Basis::Fitting, named, facts);
    }
    // Provisioners answer "claim Selector is not supported" (`ProvisionExt` in
    // `pkg/controller/controller.go` of kubernetes-csi/external-provisioner).
    if claim.spec.selector.is_some() {
        return unknown(Missing::FittingVolume, named);
    }
    if modes.is_shared() {
        return named;
    }
    match class {
        Ok(class) => by_class(claim, Some(class), named, facts),
        Err(missing) => without_class(claim, missing, named, facts),
    }
}

/// A claim whose class is not in view. If the view is partial, the class is guessed from its name.
/// If the name means nothing, the volume is assumed to be attached, as most are, unless something
/// out of view is known to make the class.
fn without_class(
    claim: &Claim,
    missing: Missing,
    named: UsedVolume,
    facts: Facts<'_>,
) -> UsedVolume {
    let named = UsedVolume {
        modes: claim.spec.access_modes,
        ..named
    };
    if !facts.view.is_partial() {
        return unknown(missing, named);
    }
    let grounds = match missing {
        Missing::Class(name, absence) => match likely(claim, &name, &named, facts) {
            Likely::This(volume) => return volume,
            Likely::Either => return unknown(Missing::Class(name, absence), named),
            Likely::Anything if facts.view.overlay().made_classes.contains(&name) => {
                return unknown(Missing::Class(name, absence), named);
            }
            Likely::Anything => Grounds::UnknownClass(name),
        },
        Missing::DefaultClass(_) if facts.view.overlay().default_in_doubt => {
            return unknown(missing, named);
        }
        Missing::DefaultClass(_) => Grounds::UnknownDefaultClass,
        other => return unknown(other, named),
    };
    UsedVolume {
        attach_constraint: AttachConstraint::Exclusive {
            basis: Basis::Forecast,
            grounds,
        },
        ..named
    }
}

/// The conclusion from the name of a class.
enum Likely {
    /// All meanings of the name agree.
    This(UsedVolume),
    /// One meaning says that the volume is attached, another that it is not. Assuming either risks
    /// a false alarm or a missed one.
    Either,
    /// The name means nothing.
    Anything,
}

/// The conclusion from the name of the claim's class.
fn likely(claim: &Claim, class: &Text, named: &UsedVolume, facts: Facts<'_>) -> Likely {
    let meanings: Vec<UsedVolume> = storage::supposed_classes(class)
        .iter()
        .map(|class| by_class(claim, Some(class), named.clone(), facts))
        // The driver's reaction depends on parameters, which the name of a class does not show.
        .map(|volume| match volume.attach_constraint {
            AttachConstraint::Driver(_) => UsedVolume {
                attach_constraint: AttachConstraint::Free,
                ..volume
            },
            _ => volume,
        })
        .collect();
    let Some((first, others)) = meanings.split_first() else {
        return Likely::Anything;
    };
    let agrees = |other: &UsedVolume| {
        other.attach_constraint == first.attach_constraint
            && other.stays_on_its_node == first.stays_on_its_node
    };
    if !others.iter().all(agrees) {
        let is_free = |volume: &UsedVolume| volume.attach_constraint == AttachConstraint::Free;
        return if meanings.iter().any(is_free) {
            Likely::Either
        } else {
            Likely::Anything
        };
    }
    let attach_constraint = match &first.attach_constraint {
        AttachConstraint::Free => AttachConstraint::Free,
        AttachConstraint::Exclusive { basis, .. } => AttachConstraint::Exclusive {
            basis: *basis,
            grounds: Grounds::ClassName(class.clone()),
        },
        AttachConstraint::SinglePod
        | AttachConstraint::Driver(_)
        | AttachConstraint::Unknown(_) => return Likely::Anything,
    };
    Likely::This(UsedVolume {
        attach_constraint,
        ..first.clone()
    })
}

fn persistent(
    volume: &Volume,
    claim: &Claim,
    basis: Basis,
    named: UsedVolume,
    facts: Facts<'_>,
) -> UsedVolume {
    let modes = volume.spec.access_modes;
    let (driver, attach, modes) = match &volume.spec.source {
        VolumeSource::Csi(driver) => (driver.clone(), attach(driver, facts), modes),
        VolumeSource::InTree(in_tree) => (
            Text::from(in_tree.field),
            attach_in_tree(in_tree, facts),
            in_tree.effective_modes(modes),
        ),
        VolumeSource::Unknown => match class_of(claim, facts) {
            Ok(class) => (class.driver().into(), attach(class.driver(), facts), modes),
            Err(_) => (Text::default(), Attach::Unforeseen, modes),
        },
    };
    let reach = reach(volume);
    let class = class_of(claim, facts)
        .ok()
        .filter(|it| it.driver() == driver);
    let stays = match node_local(&driver, class, facts) {
        NodeLocal::Pinned => reach.is_some(),
        NodeLocal::Scheduled => true,
        NodeLocal::No | NodeLocal::Unpinned | NodeLocal::Unknown => false,
    };
    let guarded = attach_constraint(modes, attach, basis, facts);
    UsedVolume {
        attach_constraint: match guarded {
            AttachConstraint::Free => mislabelled(volume, claim, facts).map_or_else(
                || unattached(claim, modes, attach, &driver, class, facts),
                AttachConstraint::Driver,
            ),
            guarded => guarded,
        },
        modes,
        driver,
        reach,
        stays_on_its_node: stays,
        ..named
    }
}

/// A claim whose volume is not in view. Its modes are those of its status if it is bound, else the
/// requested ones; its class may be known.
fn by_class(
    claim: &Claim,
    class: Option<&StorageClass>,
    named: UsedVolume,
    facts: Facts<'_>,
) -> UsedVolume {
    let (modes, basis) = if claim.spec.volume_name.is_empty() {
        (claim.spec.access_modes, Basis::Forecast)
    } else {
        (claim.status.access_modes, Basis::Bound)
    };
    let Some(class) = class else {
        return UsedVolume {
            attach_constraint: attach_constraint(modes, Attach::Unforeseen, basis, facts),
            modes,
            ..named
        };
    };
    let driver = class.driver();
    let attach = attach(driver, facts);
    let attach_constraint = attach_constraint(modes, attach, basis, facts);
    if attach == Attach::Unforeseen && attach_constraint != AttachConstraint::Free {
        return UsedVolume {
            modes,
            ..unknown(unforeseen(class), named)
        };
    }
    UsedVolume {
        attach_constraint: match attach_constraint {
            AttachConstraint::Free => unattached(claim, modes, attach, driver, Some(class), facts),
            guarded => guarded,
        },
        modes,
        driver: driver.into(),
        reach: class.allowed_nodes(),
        stays_on_its_node: matches!(
            node_local(driver, Some(class), facts),
            NodeLocal::Pinned | NodeLocal::Scheduled
        ),
        stays_in_its_zone: facts.catalog.reach(driver, &class.parameters) == Some(Reach::Zone),
        ..named
    }
}

/// The fact that is missing to know a volume that its class does not determine.
fn unforeseen(class: &StorageClass) -> Missing {
    if class.provisioner == NO_PROVISIONER {
        Missing::FittingVolume
    } else {
        Missing::Provisioner(class.driver().into())
    }
}

/// The constraint on a volume with these modes. A volume without access modes, or with a shared one
/// among them, may go to many nodes.
///
/// Source: `IsMultiAttachAllowed` in `pkg/volume/util/util.go`.
fn attach_constraint(
    modes: AccessModes,
    attach: Attach,
    basis: Basis,
    facts: Facts<'_>,
) -> AttachConstraint {
    if modes.is_empty() || modes.is_shared() {
        return AttachConstraint::Free;
    }
    let grounds = match attach {
        Attach::NotRequired { .. } => return AttachConstraint::Free,
        Attach::Required { .. } => Grounds::Known,
        Attach::Assumed if !facts.view.is_partial() => Grounds::NoCsiDriver,
        Attach::BySetup => Grounds::FlexVolume,
        Attach::Assumed | Attach::Unforeseen => Grounds::UnknownDriver,
    };
    AttachConstraint::Exclusive { basis, grounds }
}

/// The constraint on a volume that nothing attaches: the driver's reaction to a second use, as far
/// as the catalog says. `class` is `None` if it is not known.
fn unattached(
    claim: &Claim,
    modes: AccessModes,
    attach: Attach,
    driver: &str,
    class: Option<&StorageClass>,
    facts: Facts<'_>,
) -> AttachConstraint {
    let Attach::NotRequired { by } = attach else {
        return AttachConstraint::Free;
    };
    if modes.is_empty() || modes.is_shared() {
        return AttachConstraint::Free;
    }
    let parameters = class.map(|it| &it.parameters);
    // A raw device has no file system that two nodes could damage.
    let is_block = claim.spec.volume_mode == VolumeMode::Block;
    AttachConstraint::Driver(match facts.catalog.second_use(driver, parameters) {
        Some(SecondUse::SecondMountRefused) if !is_block => ByDriver::RefusesSecondMount,
        Some(SecondUse::SecondNodeRefused) => ByDriver::RefusesSecondNode,
        Some(SecondUse::SecondNodeAdmitted) if !is_block => ByDriver::AdmitsSecondNode,
        None if !is_block
            && matches!(by, AttachSource::CsiDriver | AttachSource::Catalog)
            && facts.catalog.is_disk(driver, parameters) =>
        {
            return AttachConstraint::Unknown(Missing::SecondNode(driver.into()));
        }
        _ => return AttachConstraint::Free,
    })
}

pub(super) fn attach(name: &str, facts: Facts<'_>) -> Attach {
    facts
        .catalog
        .attach(name, |driver| facts.view.csi_driver(driver))
}

fn attach_in_tree(in_tree: &InTreeType, facts: Facts<'_>) -> Attach {
    facts
        .catalog
        .attach_in_tree(in_tree, |driver| facts.view.csi_driver(driver))
}

/// Whether such volumes live on one node, given the parameters of their class if it is known.
fn node_local(driver: &str, class: Option<&StorageClass>, facts: Facts<'_>) -> NodeLocal {
    let parameters = &StorageClass::or_unknown(class).parameters;
    facts.catalog.node_local(driver, parameters)
}
