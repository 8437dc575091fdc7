//! One provisioner of the catalog.

use serde::Deserialize;

use super::condition::Condition;
use super::modes;
use super::reach::Reach;
use super::second_use::SecondUse;
use crate::model::Text;
use crate::model::access_mode::{AccessModes, VolumeMode};

/// What is known about one provisioner, or about all whose names fit a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The provisioner's name, or a pattern with `*`.
    pub name: Text,
    /// What people call the product.
    pub(super) title: Text,
    /// The CSI driver that serves this in-tree provisioner's volumes today.
    pub(super) replaced_by: Option<Text>,
    /// What changes the access modes; in the file's order.
    pub(super) conditions: Vec<Condition>,
    /// What speaks for or against ReadWriteOncePod.
    pub(super) rwop: Rwop,
    /// Whether the attach-detach controller acts for its volumes; `None`: not known.
    pub(super) attach_required: Option<bool>,
    /// Whether the driver refuses, for the first node as well, to attach a volume whose access
    /// modes it cannot give.
    pub(super) attach_checks_modes: bool,
    /// How the handles of volumes begin that stand for another disk on each node.
    pub(super) handle_of_each_node: Option<Text>,
    /// Whether the data lives on one node only.
    pub node_local: bool,
    /// For node-local data: whether the volumes carry the node affinity that
    /// keeps pods there; `None`: not known.
    pub pv_node_affinity: Option<bool>,
    /// For node-local data without that affinity: whether a scheduler of the driver's own
    /// keeps pods there.
    pub(super) own_scheduler: bool,
    /// How far a ReadWriteOnce volume can follow its pod; `None`: not known.
    pub reach: Option<Reach>,
    /// How a second use ends where nothing attaches; `None`: not known.
    pub(super) second_use: Option<SecondUse>,
    /// A sentence worth showing.
    pub(super) note: Option<Text>,
    filesystem: ModeList,
    block: ModeList,
    /// Whether a policy states `attach_required`.
    pub(super) attach_stated: bool,
}

/// The access modes of a provisioner for one volume mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeList {
    /// Granted without any condition; `None`: not known, empty: the volume mode is refused.
    pub granted: Option<AccessModes>,
    /// Granted at most, with every condition met; `None`: not known.
    pub possible: Option<AccessModes>,
    /// How sure this is.
    pub confidence: Confidence,
}

impl ModeList {
    /// A list stated by a user: exactly these modes, whatever the parameters.
    pub(super) const fn stated(modes: AccessModes) -> Self {
        Self {
            granted: Some(modes),
            possible: Some(modes),
            confidence: Confidence::Stated,
        }
    }

    /// Nothing known.
    pub(super) const UNKNOWN: Self = Self {
        granted: None,
        possible: None,
        confidence: Confidence::Believed,
    };

    /// Whether conditions apply. They do not apply to what a user states.
    pub(super) fn is_conditional(self) -> bool {
        self.confidence != Confidence::Stated
    }
}

/// What speaks for or against ReadWriteOncePod.
///
/// Kubernetes enforces the mode in the scheduler, so a driver needs to know
/// little about it: only [`Rwop::Refused`] is evidence that a claim fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rwop {
    /// The driver has the capability `SINGLE_NODE_MULTI_WRITER`.
    Native,
    /// The sidecars request a plain single-node writer from the driver instead.
    Mapped,
    /// Not CSI: the provisioner copies the mode to the volume.
    Accepted,
    /// It fails.
    Refused,
    /// The vendor says that it is not supported.
    UnsupportedByVendor,
    /// Nothing is known.
    #[default]
    Unknown,
}

/// How sure a list of modes is, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
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
    Believed,
}

impl Confidence {
    /// Whether a claim may be refused on the strength of it.
    pub(crate) const fn is_firm(self) -> bool {
        matches!(self, Self::Stated | Self::Verified)
    }

    /// How sure the catalog is, in words.
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
    pub const fn modes(&self, mode: VolumeMode) -> ModeList {
        match mode {
            VolumeMode::Filesystem => self.filesystem,
            VolumeMode::Block => self.block,
        }
    }

    pub(super) const fn state_modes(&mut self, mode: VolumeMode, modes: AccessModes) {
        match mode {
            VolumeMode::Filesystem => self.filesystem = ModeList::stated(modes),
            VolumeMode::Block => self.block = ModeList::stated(modes),
        }
    }

    /// An entry with a name and nothing else.
    pub(super) fn unknown(name: Text) -> Self {
        Self {
            title: name.clone(),
            name,
            replaced_by: None,
            conditions: Vec::new(),
            rwop: Rwop::Unknown,
            attach_required: None,
            attach_checks_modes: false,
            handle_of_each_node: None,
            node_local: false,
            pv_node_affinity: None,
            own_scheduler: false,
            reach: None,
            second_use: None,
            note: None,
            filesystem: ModeList::UNKNOWN,
            block: ModeList::UNKNOWN,
            attach_stated: false,
        }
    }
}

/// An entry as `catalog.yaml` writes it; the file's header explains the keys.
/// Where the facts come from is for readers and is not kept.
#[derive(Deserialize)]
pub(super) struct RawEntry {
    title: Text,
    #[serde(default)]
    replaced_by: Option<Text>,
    #[serde(default, deserialize_with = "modes::exact")]
    filesystem: Option<AccessModes>,
    #[serde(default, deserialize_with = "modes::exact")]
    block: Option<AccessModes>,
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    rwop: Rwop,
    #[serde(default)]
    attach_required: Option<bool>,
    #[serde(default)]
    attach_checks_modes: bool,
    #[serde(default)]
    handle_of_each_node: Option<Text>,
    #[serde(default)]
    node_local: bool,
    #[serde(default)]
    pv_node_affinity: Option<bool>,
    #[serde(default)]
    own_scheduler: bool,
    #[serde(default)]
    reach: Option<Reach>,
    #[serde(default)]
    second_use: Option<SecondUse>,
    confidence: Confidence,
    #[serde(default)]
    note: Option<Text>,
}

impl RawEntry {
    /// The entry under its name, with the bound on its modes worked out.
    pub(super) fn named(self, name: Text) -> Entry {
        let list = |mode, granted: Option<AccessModes>| ModeList {
            granted,
            possible: granted.map(|granted| {
                self.conditions.iter().fold(granted, |modes, condition| {
                    modes.union(condition.effect(mode).grants())
                })
            }),
            confidence: self.confidence,
        };
        Entry {
            filesystem: list(VolumeMode::Filesystem, self.filesystem),
            block: list(VolumeMode::Block, self.block),
            name,
            title: self.title,
            replaced_by: self.replaced_by,
            conditions: self.conditions,
            rwop: self.rwop,
            attach_required: self.attach_required,
            attach_checks_modes: self.attach_checks_modes,
            handle_of_each_node: self.handle_of_each_node,
            node_local: self.node_local,
            pv_node_affinity: self.pv_node_affinity,
            own_scheduler: self.own_scheduler,
            reach: self.reach,
            second_use: self.second_use,
            note: self.note,
            attach_stated: false,
        }
    }
}
