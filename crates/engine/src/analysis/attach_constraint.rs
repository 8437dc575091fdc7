//! The constraints that keep a volume on one node or in one pod, and how they are known.

use super::Certainty;
use crate::model::Text;
use crate::model::access_mode::AccessModes;
use crate::snapshot::Absence;

/// The constraint that keeps a volume on one node or in one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttachConstraint {
    /// Any number of nodes may use it, or nothing checks that.
    #[default]
    Free,
    /// It attaches to one node at a time: the attach-detach controller refuses a second.
    Exclusive {
        /// The basis on which its access modes are known.
        basis: Basis,
        /// The grounds on which it is known to be attached.
        grounds: Grounds,
    },
    /// One pod may use it at a time: the scheduler refuses a second.
    SinglePod,
    /// Kubernetes checks nothing, but the driver's reaction to a second use is known.
    Driver(ByDriver),
    /// The constraint is not known, because a fact is missing.
    Unknown(Missing),
}

/// The reaction of a driver to a further use of a volume that Kubernetes allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByDriver {
    /// Nothing attaches, and the driver refuses a second mount, even on the same node.
    RefusesSecondMount,
    /// Nothing attaches, and the driver refuses a second node.
    RefusesSecondNode,
    /// Nothing attaches, and a second node gets the block device with its file system.
    AdmitsSecondNode,
    /// The volume is labelled with these modes for several nodes, which the driver cannot give: it
    /// refuses to attach the volume to a second one.
    CannotShare(AccessModes),
    /// The volume is labelled with these modes, which the driver cannot give: it refuses to
    /// attach it to any node.
    RefusesModes(AccessModes),
    /// The volume has both ReadWriteOnce and ReadOnlyMany. The external-attacher has no CSI access
    /// mode for that combination, so it attaches the volume to no node (`accessmodes` of
    /// kubernetes-csi/csi-lib-utils).
    NeverAttached,
}

/// The basis on which a volume's access modes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The persistent volume, or the claim's status, which repeats it.
    Bound,
    /// A free persistent volume that fits the claim, which is not bound yet.
    Fitting,
    /// The claim and its class: a forecast.
    Forecast,
    /// The pod template itself.
    Inline,
}

/// The grounds on which a volume is known, or only likely, to be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// The cluster's objects, the policy, the catalog or Kubernetes itself.
    Known,
    /// Nothing is known about the CSI driver; without a CSIDriver object Kubernetes assumes that it
    /// attaches.
    NoCsiDriver,
    /// The name of the class, which is not in view: installations of the driver create a class with
    /// that name.
    ClassName(Text),
    /// Nothing: the class of that name is not in view.
    UnknownClass(Text),
    /// Nothing: the claim names no class, and the default one is not in view.
    UnknownDefaultClass,
    /// Nothing: no object shows whether the driver of a FlexVolume attaches.
    FlexVolume,
    /// Nothing: the driver is not known, and its CSIDriver object may be out of view.
    UnknownDriver,
}

impl Grounds {
    /// The certainty that these grounds give.
    pub(crate) const fn certainty(&self) -> Certainty {
        match self {
            Self::Known | Self::NoCsiDriver => Certainty::Verified,
            Self::ClassName(_) => Certainty::Likely,
            Self::UnknownClass(_)
            | Self::UnknownDefaultClass
            | Self::FlexVolume
            | Self::UnknownDriver => Certainty::Assumed,
        }
    }
}

/// The fact that is missing to know the attach constraint of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The claim.
    Claim(Absence),
    /// The class that the claim names.
    Class(Text, Absence),
    /// The claim names no class, and no default one was found.
    DefaultClass(Absence),
    /// The claim asks for a manually created volume, and none fits.
    FittingVolume,
    /// The class's provisioner is no CSI driver and in no catalog.
    Provisioner(Text),
    /// The volume that the claim names.
    Volume(Text, Absence),
    /// The reaction of this driver to a second node: its volumes are disks, and nothing attaches
    /// them.
    SecondNode(Text),
}
