//! `diagnose`: why pods wait for volumes, and the way out.
//!
//! ```text
//! cluster ─▶ one moment of it ─▶ what is asked about ─▶ cases ─▶ report
//! ```

mod asked;
mod open;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::cluster::{ClusterError, Connection};
use super::output::exit_code;
use crate::report::diagnosis::{self as report, Diagnosis, Format};
use asked::{Asked, AskedError};
use doctor::diagnosis::{Clock, DiagnosisInput, cases, command, span};
use engine::analysis;
use engine::policy::Policy;
use engine::snapshot::Lookup;
use engine::storage::{Catalog, CatalogError};
use source::one_shot::OneShot;

pub use crate::report::diagnosis::Format as DiagnosisFormat;

/// Between two looks at a cluster that is watched.
const AGAIN: Duration = Duration::from_secs(5);

/// The options of `diagnose`.
#[derive(Args, Clone, Debug)]
pub struct DiagnoseOptions {
    /// A pod, a workload or a claim, as NAME or KIND/NAME [default: everything that waits]
    #[arg(value_name = "POD|WORKLOAD|CLAIM")]
    pub name: Option<String>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,

    /// Look at this namespace only, which takes no right to the others
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// How to write what was found
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Look again every few seconds and tell what has changed, until nothing waits any more
    #[arg(long)]
    pub watch: bool,
}

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum DiagnoseError {
    /// The cluster cannot be read.
    #[error(transparent)]
    Snapshot(#[from] ClusterError),
    /// What is asked about is not there.
    #[error(transparent)]
    Asked(#[from] AskedError),
    /// There is no such namespace.
    #[error(
        "The cluster has no namespace \"{0}\". `kubectl get namespaces` lists the ones there are."
    )]
    Namespace(String),
    /// The catalog cannot be used.
    #[error("The catalog of drivers cannot be read: {0}.")]
    Catalog(&'static CatalogError),
    /// Standard output is gone.
    #[error("The diagnosis could not be written: {0}.")]
    Write(#[from] io::Error),
}

pub(super) fn run(options: &DiagnoseOptions) -> ExitCode {
    exit_code(diagnose(options), |error| match error {
        DiagnoseError::Write(error) => Some(error),
        _ => None,
    })
}

fn diagnose(options: &DiagnoseOptions) -> Result<u8, DiagnoseError> {
    let asked = options.name.as_deref().map(Asked::read).transpose()?;
    let connection = Connection::open(options.context.as_deref())?;
    let mut shown = None;
    loop {
        let one_shot = connection.one_shot(options.namespace.as_deref())?;
        let (diagnosis, code) = look(options, asked.as_ref(), &connection, one_shot)?;
        // Spans grow while nothing happens, so that cases are compared by who waits for what.
        let essence = essence(&diagnosis);
        if shown.as_ref() != Some(&essence) {
            let mut out = io::stdout().lock();
            if shown.is_some() {
                writeln!(out)?;
            }
            report::write(&diagnosis, options.format, &mut out)?;
            out.flush()?;
            shown = Some(essence);
        }
        if !options.watch || diagnosis.cases.is_empty() {
            return Ok(code);
        }
        std::thread::sleep(AGAIN);
    }
}

fn look(
    options: &DiagnoseOptions,
    asked: Option<&Asked>,
    connection: &Connection,
    one_shot: OneShot,
) -> Result<(Diagnosis, u8), DiagnoseError> {
    let catalog = Catalog::embedded().map_err(DiagnoseError::Catalog)?;
    let OneShot {
        cluster,
        observed,
        now,
    } = one_shot;
    if let Some(name) = &options.namespace
        && matches!(cluster.view().namespace(name), Lookup::Absent)
    {
        return Err(DiagnoseError::Namespace(name.clone()));
    }
    let now = now.unwrap_or_else(Timestamp::now);
    let kubectl = command::kubectl(options.context.as_deref());
    let facts = DiagnosisInput {
        objects: analysis::Facts {
            view: cluster.view(),
            catalog,
            nodes: Policy::default().nodes(),
        },
        observed: &observed,
        now,
        kubectl: &kubectl,
    };
    let mut told = cases(facts, |wanted| {
        // What helps without them is told all the same.
        connection.documents(wanted).unwrap_or_default()
    });
    let mut diagnosis = Diagnosis {
        open: open::questions(&observed),
        ..Diagnosis::default()
    };
    if let Some(asked) = asked {
        told.retain(|case| asked.is_about(case));
        if told.is_empty() {
            diagnosis.notes.push(asked.nothing(facts)?);
        }
    }
    diagnosis.cases = told;
    diagnosis
        .notes
        .extend(Clock::of(&observed, now).skew.map(|ahead| {
            let (direction, by) = if ahead > 0 {
                ("ahead of", span(ahead))
            } else {
                ("behind", span(-ahead))
            };
            format!("The clocks of the nodes are {by} {direction} the API server's. Leases are judged by the youngest of them.")
        }));
    let code = match (diagnosis.cases.is_empty(), open::is_blind(&observed)) {
        (false, _) => 1,
        (true, true) => 2,
        (true, false) => 0,
    };
    Ok((diagnosis, code))
}

/// Who waits for what, and why.
fn essence(diagnosis: &Diagnosis) -> Vec<String> {
    let cases = diagnosis.cases.iter().map(|case| {
        let pods: Vec<&str> = case.waiting.iter().map(|it| it.pod.as_str()).collect();
        format!("{} {} {pods:?}", case.cause, case.volume.claim)
    });
    cases.chain(diagnosis.open.iter().cloned()).collect()
}
