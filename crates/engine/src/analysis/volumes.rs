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
use crate::model::in_tree::{InTreeType, csi_driver_of};
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

/// Every volume that the workload's pods share, in the order of the template. A StatefulSet's own
/// claims are in `own_claims`: each is for one pod.
pub fn of(workload: &Workload, facts: Facts<'_>) -> Vec<UsedVolume> {
    workload
        .template
        .volumes
        .iter()
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
    let named = UsedVolume { name: name.into(), ..UsedVolume::default() };
    through_claim(name, named, namespace, facts)
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
    match found.attach_constraint {
        AttachConstraint::Unknown(Missing::Claim(_)) => claimed(template, found, facts),
        _ => found,
    }
}

fn used(volume: &PodVolume, namespace: &str, facts: Facts<'_>) -> UsedVolume {
    let named =
        UsedVolume { index: volume.index, name: volume.name.clone(), ..UsedVolume::default() };
    match &volume.source {
        PodVolumeSource::Claim { name } => through_claim(name, named, namespace, facts),
        PodVolumeSource::Inline { in_tree, read_only } => inline(in_tree, *read_only, named, facts),
    }
}

/// The volume that a pod gets through the claim `name`; `named` has its name and place in the pod.
fn through_claim(name: &str, named: UsedVolume, namespace: &str, facts: Facts<'_>) -> UsedVolume {
    let named = UsedVolume { claim: Some(name.into()), ..named };
    // The template from which a StatefulSet, or a bare pod with an ephemeral volume, will have the
    // claim made.
    let template =
        || {
            facts.view.workloads_using(namespace, name).into_iter().find_map(|user| {
                user.template_of_claim(name).or_else(|| user.ephemeral_claim(name))
            })
        };
    match facts.view.claim(namespace, name).known().or_else(|absence| template().ok_or(absence)) {
        Ok(claim) => claimed(claim, named, facts),
        Err(absence) => UsedVolume {
            attach_constraint: AttachConstraint::Unknown(Missing::Claim(absence)),
            ..named
        },
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
    let limits = in_tree.inline(read_only);
    UsedVolume {
        attach_constraint: match grounds(attach_in_tree(in_tree, facts), facts) {
            Ok(grounds) if are_for_one_node(limits.access_modes) => {
                AttachConstraint::Exclusive { basis: Basis::Inline, grounds }
            }
            _ => AttachConstraint::Free,
        },
        modes: limits.access_modes,
        driver: csi_driver_of(in_tree.provisioner).into(),
        one_pod_a_node: limits.one_pod_a_node,
        ..named
    }
}

fn claimed(claim: &Claim, named: UsedVolume, facts: Facts<'_>) -> UsedVolume {
    let mut claimed = Claimed { claim, used: named, facts };
    claimed.used.attach_constraint = claimed.by_claim();
    claimed.used
}

/// A volume that comes through a claim. The methods return its constraint; those that take
/// `&mut self` also set the other facts in `used`.
#[derive(Clone)]
struct Claimed<'a> {
    claim: &'a Claim,
    used: UsedVolume,
    facts: Facts<'a>,
}

impl Claimed<'_> {
    fn by_claim(&mut self) -> AttachConstraint {
        let (claim, facts) = (self.claim, self.facts);
        // The scheduler reads the claim, not the volume (its VolumeRestrictions plugin).
        let modes = claim.spec.access_modes;
        if modes.contains(AccessMode::ReadWriteOncePod) {
            self.used.modes = modes;
            if let Ok(class) = class_of(claim, facts) {
                self.used.driver = class.driver().into();
            }
            return AttachConstraint::SinglePod;
        }
        let name = &claim.spec.volume_name;
        if !name.is_empty() {
            let absence = match facts.view.volume(name).known() {
                Ok(volume) => return self.by_volume(volume, Basis::Bound),
                Err(absence) => absence,
            };
            let unknown = AttachConstraint::Unknown(Missing::Volume(name.clone(), absence));
            if claim.status.access_modes.is_empty() {
                return unknown;
            }
            return match self.by_class(class_of(claim, facts).ok()) {
                AttachConstraint::Unknown(_) => unknown,
                found => found,
            };
        }
        let class = class_of(claim, facts);
        let known = class.as_ref().ok().copied();
        if let Some(volume) = fitting(claim, known, facts) {
            return self.by_volume(volume, Basis::Fitting);
        }
        // Provisioners answer "claim Selector is not supported" (`ProvisionExt` in
        // `pkg/controller/controller.go` of kubernetes-csi/external-provisioner).
        if claim.spec.selector.is_some() {
            return AttachConstraint::Unknown(Missing::FittingVolume);
        }
        if modes.is_shared() {
            return AttachConstraint::Free;
        }
        match class {
            Ok(class) => self.by_class(Some(class)),
            Err(missing) => self.without_class(missing),
        }
    }

    /// The constraint if the class is not in view. If the view is partial, the class is guessed
    /// from its name. If that fails, the volume is assumed to be attached, as most are, unless
    /// something out of view is known to make the class.
    fn without_class(&mut self, missing: Missing) -> AttachConstraint {
        self.used.modes = self.claim.spec.access_modes;
        let overlay = self.facts.view.overlay();
        let grounds = match &missing {
            _ if !overlay.partial => None,
            Missing::Class(name, _) => match self.by_class_name(name, &missing) {
                Some(likely) => return likely,
                None if overlay.made_classes.contains(name) => None,
                None => Some(Grounds::UnknownClass(name.clone())),
            },
            Missing::DefaultClass(_) if !overlay.default_in_doubt => {
                Some(Grounds::UnknownDefaultClass)
            }
            _ => None,
        };
        match grounds {
            Some(grounds) => AttachConstraint::Exclusive { basis: Basis::Forecast, grounds },
            None => AttachConstraint::Unknown(missing),
        }
    }

    /// The constraint by the name of a class, which is `missing`. If one meaning says that the
    /// volume is attached and another that it is not, assuming either risks a false alarm or a
    /// missed one, so it is unknown. `None` if the name has no meaning, or none that helps.
    fn by_class_name(&mut self, name: &Text, missing: &Missing) -> Option<AttachConstraint> {
        let meaning = |class| {
            let mut meaning = self.clone();
            meaning.used.attach_constraint = match meaning.by_class(Some(class)) {
                // The driver's reaction depends on parameters, which the name of a class does not
                // show.
                AttachConstraint::Driver(_) => AttachConstraint::Free,
                constraint => constraint,
            };
            meaning.used
        };
        let meanings: Vec<UsedVolume> =
            storage::supposed_classes(name).iter().map(meaning).collect();
        let (first, others) = meanings.split_first()?;
        let agrees = |other: &UsedVolume| {
            other.attach_constraint == first.attach_constraint
                && other.stays_on_its_node == first.stays_on_its_node
        };
        if !others.iter().all(agrees) {
            let is_open =
                meanings.iter().any(|volume| volume.attach_constraint == AttachConstraint::Free);
            return is_open.then(|| AttachConstraint::Unknown(missing.clone()));
        }
        let likely = match first.attach_constraint {
            AttachConstraint::Free => AttachConstraint::Free,
            AttachConstraint::Exclusive { basis, .. } => {
                AttachConstraint::Exclusive { basis, grounds: Grounds::ClassName(name.clone()) }
            }
            _ => return None,
        };
        self.used = first.clone();
        Some(likely)
    }

    fn by_volume(&mut self, volume: &Volume, basis: Basis) -> AttachConstraint {
        let (claim, facts) = (self.claim, self.facts);
        let class = class_of(claim, facts).ok();
        let labelled = volume.spec.access_modes;
        let (driver, attach, modes) = match (&volume.spec.source, class) {
            (VolumeSource::Csi(driver), _) => (driver.clone(), attach(driver, facts), labelled),
            (VolumeSource::InTree(in_tree), _) => (
                Text::from(in_tree.field),
                attach_in_tree(in_tree, facts),
                in_tree.effective_modes(labelled),
            ),
            (VolumeSource::Unknown, Some(class)) => {
                (class.driver().into(), attach(class.driver(), facts), labelled)
            }
            (VolumeSource::Unknown, None) => (Text::default(), Attach::Unforeseen, labelled),
        };
        let matching = class.filter(|class| class.driver() == driver);
        self.used.modes = modes;
        self.used.reach = reach(volume);
        let parameters = &StorageClass::or_unknown(matching).parameters;
        self.used.stays_on_its_node = match facts.catalog.node_local(&driver, parameters) {
            NodeLocal::Pinned => self.used.reach.is_some(),
            NodeLocal::Scheduled => true,
            NodeLocal::No | NodeLocal::Unpinned | NodeLocal::Unknown => false,
        };
        self.used.driver = driver;
        match self.by_driver(attach, basis, matching) {
            AttachConstraint::Free => mislabelled(volume, claim, facts)
                .map_or(AttachConstraint::Free, AttachConstraint::Driver),
            held => held,
        }
    }

    /// The constraint if the volume is not in view. Its modes are those of the claim's status if it
    /// is bound, else the requested ones; its class may be known.
    fn by_class(&mut self, class: Option<&StorageClass>) -> AttachConstraint {
        let (claim, facts) = (self.claim, self.facts);
        let (modes, basis) = if claim.spec.volume_name.is_empty() {
            (claim.spec.access_modes, Basis::Forecast)
        } else {
            (claim.status.access_modes, Basis::Bound)
        };
        self.used.modes = modes;
        let Some(class) = class else {
            return self.by_driver(Attach::Unforeseen, basis, None);
        };
        let driver = class.driver();
        let attach = attach(driver, facts);
        if attach == Attach::Unforeseen && are_for_one_node(modes) {
            return AttachConstraint::Unknown(if class.provisioner == NO_PROVISIONER {
                Missing::FittingVolume
            } else {
                Missing::Provisioner(driver.into())
            });
        }
        self.used.driver = driver.into();
        self.used.reach = class.allowed_nodes();
        self.used.stays_on_its_node = matches!(
            facts.catalog.node_local(driver, &class.parameters),
            NodeLocal::Pinned | NodeLocal::Scheduled
        );
        self.used.stays_in_its_zone =
            facts.catalog.reach(driver, &class.parameters) == Some(Reach::Zone);
        self.by_driver(attach, basis, Some(class))
    }

    /// The constraint on a volume whose modes and driver are set. If nothing attaches it, this is
    /// the driver's reaction to a second use, as far as the catalog says. `class` is `None` if it
    /// is not known.
    fn by_driver(
        &self,
        attach: Attach,
        basis: Basis,
        class: Option<&StorageClass>,
    ) -> AttachConstraint {
        if !are_for_one_node(self.used.modes) {
            return AttachConstraint::Free;
        }
        let by = match grounds(attach, self.facts) {
            Ok(grounds) => return AttachConstraint::Exclusive { basis, grounds },
            Err(by) => by,
        };
        let (driver, catalog) = (&self.used.driver, self.facts.catalog);
        let parameters = class.map(|class| &class.parameters);
        // A raw device has no file system that two nodes could damage.
        let is_block = self.claim.spec.volume_mode == VolumeMode::Block;
        AttachConstraint::Driver(match catalog.second_use(driver, parameters) {
            Some(SecondUse::SecondMountRefused) if !is_block => ByDriver::RefusesSecondMount,
            Some(SecondUse::SecondNodeRefused) => ByDriver::RefusesSecondNode,
            Some(SecondUse::SecondNodeAdmitted) if !is_block => ByDriver::AdmitsSecondNode,
            None if !is_block
                && matches!(by, AttachSource::CsiDriver | AttachSource::Catalog)
                && catalog.is_disk(driver, parameters) =>
            {
                return AttachConstraint::Unknown(Missing::SecondNode(driver.clone()));
            }
            _ => return AttachConstraint::Free,
        })
    }
}

/// Whether volumes with these modes are for one node at a time. A volume without access modes, or
/// with a shared one among them, may go to many nodes.
///
/// Source: `IsMultiAttachAllowed` in `pkg/volume/util/util.go`.
const fn are_for_one_node(modes: AccessModes) -> bool {
    !modes.is_empty() && !modes.is_shared()
}

/// The grounds on which volumes are attached.
///
/// # Errors
/// Fails with the source that says that they are not.
fn grounds(attach: Attach, facts: Facts<'_>) -> Result<Grounds, AttachSource> {
    Ok(match attach {
        Attach::NotRequired { by } => return Err(by),
        Attach::Required { .. } => Grounds::Known,
        Attach::Assumed if !facts.view.overlay().partial => Grounds::NoCsiDriver,
        Attach::BySetup => Grounds::FlexVolume,
        Attach::Assumed | Attach::Unforeseen => Grounds::UnknownDriver,
    })
}

/// Whether the volumes of a provisioner or CSI driver are attached.
pub fn attach(name: &str, facts: Facts<'_>) -> Attach {
    facts.catalog.attach(name, |driver| facts.view.csi_driver(driver))
}

fn attach_in_tree(in_tree: &InTreeType, facts: Facts<'_>) -> Attach {
    facts.catalog.attach_in_tree(in_tree, |driver| facts.view.csi_driver(driver))
}
