//! One provisioner of the catalog.

use serde::Deserialize;

use super::condition::Condition;
use super::modes::{self, ClassModes};
use super::reach::Reach;
use super::second_use::SecondUse;
use crate::model::Text;
use crate::model::access_mode::{AccessModes, VolumeMode};

/// The facts about one provisioner, or about all whose names fit a pattern, as `catalog.yaml`
/// writes them; the file's header explains the keys. The sources of the facts are for readers and
/// are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// The provisioner's name, or a pattern with `*`.
    #[serde(skip)]
    pub name: Text,
    /// The usual name of the product.
    pub(super) title: Text,
    /// The CSI driver that serves this in-tree provisioner's volumes today.
    pub(super) replaced_by: Option<Text>,
    #[serde(default, deserialize_with = "modes::exact")]
    filesystem: Option<AccessModes>,
    #[serde(default, deserialize_with = "modes::exact")]
    block: Option<AccessModes>,
    /// The conditions under which some of these facts differ, in the file's order.
    #[serde(default)]
    pub(super) conditions: Vec<Condition>,
    /// The evidence for or against ReadWriteOncePod.
    #[serde(default)]
    pub(super) rwop: Rwop,
    /// Whether the attach-detach controller acts for its volumes; `None` if unknown.
    pub(super) attach_required: Option<bool>,
    /// Whether the driver refuses, even for the first node, to attach a volume whose access modes
    /// it cannot give.
    #[serde(default)]
    pub(super) attach_checks_modes: bool,
    /// The prefix of the handles of volumes that are another disk on each node.
    pub(super) handle_of_each_node: Option<Text>,
    /// Whether the data lives on one node only.
    #[serde(default)]
    pub node_local: bool,
    /// For node-local data: whether the volumes carry the node affinity that keeps pods there;
    /// `None` if unknown.
    pub pv_node_affinity: Option<bool>,
    /// For node-local data without that affinity: whether a scheduler of the driver's own
    /// keeps pods there.
    #[serde(default)]
    pub(super) own_scheduler: bool,
    /// The reach of a ReadWriteOnce volume; `None` if unknown.
    pub reach: Option<Reach>,
    /// The result of a second use if nothing attaches the volume; `None` if unknown.
    pub(super) second_use: Option<SecondUse>,
    confidence: Confidence,
    /// A sentence for the user.
    pub(super) note: Option<Text>,
    /// The access modes that a policy states in place of the catalog, whatever the parameters.
    #[serde(skip)]
    pub(super) stated: ClassModes,
    /// The source of `attach_required`: the catalog or a policy.
    #[serde(skip)]
    pub(super) attach_by: AttachSource,
}

/// The source that says whether volumes are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttachSource {
    /// The CSIDriver object.
    CsiDriver,
    /// The policy file.
    Policy,
    /// The catalog.
    #[default]
    Catalog,
    /// Kubernetes itself: an in-tree type that it never handed to a CSI driver.
    Kubernetes,
}

/// The access modes of a provisioner for one volume mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeList {
    /// The modes granted without any condition; `None` if unknown, empty if the volume mode is
    /// refused.
    pub granted: Option<AccessModes>,
    /// The modes granted at most, with every condition met; `None` if unknown.
    pub possible: Option<AccessModes>,
    /// The confidence in the two lists.
    pub confidence: Confidence,
}

/// The evidence for or against ReadWriteOncePod.
///
/// Kubernetes enforces the mode in the scheduler, so a driver needs to know little about it: only
/// [`Rwop::Refused`] is evidence that a claim fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rwop {
    /// The driver has the capability `SINGLE_NODE_MULTI_WRITER`.
    Native,
    /// The sidecars request a plain single-node writer from the driver instead.
    Mapped,
    /// Not CSI: the provisioner copies the mode to the volume.
    Accepted,
    /// A claim with the mode fails.
    Refused,
    /// The vendor says that it is not supported.
    UnsupportedByVendor,
    /// Nothing is known.
    #[default]
    Unknown,
}

/// The confidence in a list of modes, the surest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// A policy file or an annotation states it.
    #[serde(skip)]
    Stated,
    /// Read in the driver's code or in official documentation.
    Verified,
    /// A vendor's row in the CSI driver list, which nobody validated.
    CsiDocsTable,
    /// Unconfirmed, or only partly read.
    #[default]
    Believed,
}

impl Confidence {
    /// Whether it is high enough to refuse a claim.
    pub(crate) const fn is_firm(self) -> bool {
        matches!(self, Self::Stated | Self::Verified)
    }

    /// The confidence, in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Stated => "stated by the policy or the StorageClass",
            Self::Verified => "verified in the driver's code or official documentation",
            Self::CsiDocsTable => "the vendor's own row in the CSI driver list, not validated",
            Self::Believed => "believed, not verified",
        }
    }
}

impl Entry {
    /// The access modes for volumes of this mode.
    pub fn modes(&self, mode: VolumeMode) -> ModeList {
        if let Some(stated) = self.stated.of(mode) {
            return ModeList {
                granted: Some(stated),
                possible: Some(stated),
                confidence: Confidence::Stated,
            };
        }
        let granted = match mode {
            VolumeMode::Filesystem => self.filesystem,
            VolumeMode::Block => self.block,
        };
        let grants = self.conditions.iter().map(|condition| condition.effect(mode).grants());
        ModeList {
            granted,
            possible: granted.map(|granted| grants.fold(granted, AccessModes::union)),
            confidence: self.confidence,
        }
    }
}
