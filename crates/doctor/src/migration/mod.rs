//! The way from a ReadWriteOnce claim to a ReadWriteMany one: a new claim, a copy
//! of the data, and what has to be stopped and changed for it.
//!
//! ```text
//! Wanted, Facts ─▶ Subject: the claim and who uses it ─┐
//!                  Target: class and new claim         ├─▶ Plan: steps and manifests
//!                  Delivery: who writes the manifests ─┘
//! ```
//!
//! Claims are immutable, so that there is a second one, and the first stays as it is: it
//! is the way back. Nothing is changed here: a plan is for somebody to follow.

mod copy;
mod downtime;
mod error;
mod inputs;
mod metadata_preservation;
mod new_claim;
mod plan;
mod snapshot;
mod step;
mod steps;
mod subject;
mod suspension;
mod target;
mod users;
mod words;

pub use copy::DEFAULT_IMAGE;
pub use error::MigrationBlocked;
pub use plan::{Fact, MigrationPlan, plan};
pub use step::{Action, Manifest, Step};

use engine::model::snapshot_class::SnapshotClass;

use crate::diagnosis;
use engine::model::access_mode::AccessMode;

/// How the data gets from one claim to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyBy {
    /// A Job copies file by file and compares what it has copied.
    #[default]
    Job,
    /// The driver restores a snapshot.
    Snapshot,
    /// Not at all: the application makes it anew.
    Nothing,
}

/// What somebody wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The claim's namespace.
    pub namespace: &'a str,
    /// The claim.
    pub claim: &'a str,
    /// The access mode of the new claim.
    pub mode: AccessMode,
    /// The class of the new claim; `None`: the one of the cluster that suits best.
    pub class: Option<&'a str>,
    /// The name of the new claim; `None`: the old name with the mode behind it.
    pub name: Option<&'a str>,
    /// How the data is copied.
    pub copy: CopyBy,
    /// The image of the Job that copies.
    pub image: &'a str,
}

/// What a plan rests on.
#[derive(Clone, Copy)]
pub struct MigrationInput<'a> {
    /// The cluster at one moment.
    pub cluster: diagnosis::DiagnosisInput<'a>,
    /// The VolumeSnapshotClasses; `None` where they could not be read.
    pub snapshot_classes: Option<&'a [SnapshotClass]>,
}
