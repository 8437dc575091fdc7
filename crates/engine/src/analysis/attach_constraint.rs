//! How tightly a volume is held, and how that is known.

use super::Certainty;
use crate::model::Text;
use crate::snapshot::Absence;

/// How tightly a volume is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachConstraint {
    /// Any number of nodes may have it, or nobody checks.
    Free,
    /// One node at a time may have it: the attach-detach controller refuses a second.
    Exclusive {
        /// What makes its access modes known.
        basis: Basis,
        /// What makes it known that it is attached.
        grounds: Grounds,
    },
    /// One pod at a time may have it: the scheduler refuses a second.
    SinglePod,
    /// Not known, and why.
    Unknown(Missing),
}

/// What makes a volume's access modes known.
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

/// What makes it known, or only likely, that a volume is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// The cluster's objects, the policy, the catalog or Kubernetes itself.
    Known,
    /// Nothing is known of the CSI driver; without a CSIDriver object Kubernetes
    /// takes it for one that attaches.
    NoCsiDriver,
    /// The name of the class, which is not in view: installations of the driver
    /// create one of that name.
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
    /// How sure this makes it.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
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

/// What is missing to know how tightly a volume is held.
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
}
