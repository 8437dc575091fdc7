//! `migrate`: the way from a claim for one node to one for many.
//!
//! ```text
//! cluster ─▶ one moment of it ─▶ plan, or why there is none ─▶ text, and files
//! ```

mod files;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::cluster::{ClusterArgs, ClusterError};
use super::diagnose::{Asked, AskedError};
use super::output::exit_code;
use super::policy_file::{self, PolicyFileError};
use ::report::migration::{self as report, MigrationError, Objects};
use doctor::diagnosis;
use doctor::migration::{self, CopyBy, DEFAULT_IMAGE, MigrationBlocked, MigrationPlan, Wanted};
use engine::analysis::{self, NodeAssumption};
use engine::model::access_mode::AccessMode;
use files::FilesError;

/// The options of `migrate`.
#[derive(Args, Clone, Debug)]
pub struct MigrateOptions {
    /// Claim, as data, pvc/data or shop/data
    #[arg(value_name = "CLAIM", value_parser = NonEmptyStringValueParser::new())]
    pub claim: String,

    /// Access mode of the new claim
    #[arg(long, value_name = "MODE", default_value = "ReadWriteMany", value_parser = mode)]
    pub to: AccessMode,

    /// StorageClass of the new claim [default: the one that suits best]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,

    /// How the data is copied
    #[arg(long, value_enum, default_value_t = Copying::Job)]
    pub copy: Copying,

    /// Name of the new claim [default: the old one and the mode, as data-rwx]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Image of the Job that copies; with rsync in it, nothing is downloaded
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE,
        value_parser = NonEmptyStringValueParser::new())]
    pub image: String,

    /// Also write the plan and its objects into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Policy file; its provisioners correct the catalog
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Which cluster, and as whom.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Namespace of the claim [default: that of the context]
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

/// How the data gets from one claim to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Copying {
    /// A Job copies the files with rsync and compares their checksums
    Job,
    /// The driver restores a snapshot; the new class must be of the same driver
    Snapshot,
    /// Not at all: the application makes it anew
    None,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum MigrateError {
    /// The cluster cannot be read.
    #[error(transparent)]
    Snapshot(#[from] ClusterError),
    /// The claim is not named so.
    #[error(transparent)]
    Asked(#[from] AskedError),
    /// There is no way.
    #[error(transparent)]
    MigrationBlocked(#[from] MigrationBlocked),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The plan cannot be written.
    #[error(transparent)]
    MigrationPlan(#[from] MigrationError),
    /// The files cannot be written.
    #[error(transparent)]
    Files(#[from] FilesError),
}

pub(super) fn run(options: &MigrateOptions) -> ExitCode {
    exit_code(migrate(options), |error| match error {
        MigrateError::MigrationPlan(MigrationError::Write(error)) => Some(error),
        _ => None,
    })
}

fn migrate(options: &MigrateOptions) -> Result<u8, MigrateError> {
    let plan = plan(options)?;
    let mut text = Vec::new();
    match &options.out {
        Some(directory) => {
            files::write(&plan, directory)?;
            let directory = directory.display().to_string();
            report::write(&plan, Objects::Files(&directory), &mut text)?;
        }
        None => report::write(&plan, Objects::Inline, &mut text)?,
    }
    let written = io::stdout().lock().write_all(&text);
    written.map_err(MigrationError::Write)?;
    Ok(0)
}

fn plan(options: &MigrateOptions) -> Result<MigrationPlan, MigrateError> {
    let policy = policy_file::effective(options.config.as_deref())?;
    let asked = Asked::claim(&options.claim)?;
    let given = asked.namespace(options.namespace.as_deref())?;
    let connection = options.cluster.connect()?;
    let namespace = given.unwrap_or_else(|| connection.namespace());
    let one_shot = connection.one_shot(Some(namespace))?;
    let snapshot_classes = match options.copy {
        Copying::Snapshot => connection.snapshot_classes()?,
        Copying::Job | Copying::None => None,
    };
    let kubectl = options.cluster.kubectl();
    let facts = migration::MigrationInput {
        cluster: diagnosis::DiagnosisInput {
            objects: analysis::Facts {
                view: one_shot.cluster.view(),
                catalog: policy.catalog(),
                nodes: NodeAssumption::Auto,
            },
            observed: &one_shot.observed,
            now: one_shot.now.unwrap_or_else(Timestamp::now),
            kubectl: &kubectl,
        },
        snapshot_classes: snapshot_classes.as_deref(),
    };
    let wanted = Wanted {
        namespace,
        claim: asked.name(),
        mode: options.to,
        class: options.class.as_deref(),
        name: options.name.as_deref(),
        copy: match options.copy {
            Copying::Job => CopyBy::Job,
            Copying::Snapshot => CopyBy::Snapshot,
            Copying::None => CopyBy::Nothing,
        },
        image: &options.image,
    };
    let plan = migration::plan(facts, wanted, |wanted| {
        // Without them nobody knows who writes the manifests, and the output says so.
        connection.documents(wanted).unwrap_or_default()
    })?;
    Ok(plan)
}

fn mode(name: &str) -> Result<AccessMode, String> {
    AccessMode::from_name(name).ok_or_else(|| {
        "expected ReadWriteMany, or RWX for short: it is the mode to which there is a way"
            .to_owned()
    })
}
