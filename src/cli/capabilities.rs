//! `capabilities`: the access modes each StorageClass can really give.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::cluster::{ClusterArgs, ClusterError};
use super::output::{complain, print};
use engine::model::access_mode::{AccessMode, AccessModes};
use engine::model::object::ObjectKind;
use engine::model::storage_class::StorageClass;
use engine::snapshot::Snapshot;
use engine::storage::{Catalog, CatalogError, ClassModes, ClassSummary, ModeSummary};
use report::products::{self, Product};
use report::safe;
use source::facts::{self, FactsError};
use source::policy_file::{self, PolicyFileError};

/// The options of `capabilities`.
#[derive(Args, Clone, Debug)]
pub struct CapabilitiesOptions {
    /// Driver, StorageClass or product, as ebs.csi.aws.com, gp3 or "azure disk"; needs no cluster
    #[arg(value_name = "DRIVER|CLASS|PRODUCT")]
    pub name: Option<String>,

    /// Print all that the catalog knows; needs no cluster
    #[arg(long, conflicts_with_all = ["name", "cluster", "ClusterArgs", "facts"])]
    pub all: bool,

    /// Print the catalog as one Markdown page
    #[arg(long, hide = true, conflicts_with_all = ["name", "all", "cluster", "ClusterArgs", "facts"])]
    pub markdown: bool,

    /// Read the classes from the cluster, which is the default without a name
    #[arg(long)]
    pub cluster: bool,

    /// Which cluster, and as whom.
    #[command(flatten)]
    pub access: ClusterArgs,

    /// Read the classes from this file or directory, not from the cluster (repeatable)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["cluster", "ClusterArgs"])]
    pub facts: Vec<PathBuf>,

    /// Policy file; its provisioners correct the catalog
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Output format
    #[arg(long, short = 'o', visible_alias = "output", value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
}

/// A format for what is no finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Why there are no capabilities to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum CapabilitiesError {
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The facts cannot be used.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The cluster cannot be read.
    #[error(transparent)]
    Snapshot(#[from] ClusterError),
    /// Nothing has such a name.
    #[error(
        "Nothing is known of \"{0}\". `multi-attach-guard capabilities --all` lists all that is."
    )]
    Unknown(String),
    /// The catalog cannot be read: a build that went wrong.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// They cannot be put as JSON.
    #[error("The capabilities could not be written: {0}.")]
    Json(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Json {
    classes: Vec<ClassSummary>,
}

#[derive(Serialize)]
struct JsonOfProducts {
    products: Vec<Product>,
}

pub(super) fn run(options: &CapabilitiesOptions) -> ExitCode {
    match capabilities(options) {
        Ok(text) => print("capabilities", text.as_bytes()),
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

fn capabilities(options: &CapabilitiesOptions) -> Result<String, CapabilitiesError> {
    let effective = policy_file::effective(options.config.as_deref())?;
    let catalog = effective.catalog();
    if options.markdown {
        return Ok(products::page(&products::all(catalog)?));
    }
    let reads_classes = options.cluster || options.access.is_given() || !options.facts.is_empty();
    if options.all || (options.name.is_some() && !reads_classes) {
        let products = match &options.name {
            Some(name) => products::named(name, catalog)?,
            None => products::all(catalog)?,
        };
        return of_products(products, options);
    }
    let cluster = if options.facts.is_empty() {
        options
            .access
            .connect()?
            .read(|kind| matches!(kind, ObjectKind::StorageClass | ObjectKind::CsiDriver))?
    } else {
        facts::load(&options.facts, &mut io::empty())?
    };
    let mut classes = summaries(&cluster, effective.catalog());
    classes.sort_by(|a, b| a.class.cmp(&b.class));
    if let Some(name) = &options.name {
        classes.retain(|it| {
            let title = it.title.as_deref().unwrap_or_default();
            products::is_called(name, &[&it.class, &it.provisioner, title])
        });
        if classes.is_empty() {
            return Err(CapabilitiesError::Unknown(name.clone()));
        }
    }
    Ok(match options.format {
        TableFormat::Json => safe::json(&Json { classes })?,
        TableFormat::Text if classes.is_empty() => "There is no StorageClass.\n".to_owned(),
        TableFormat::Text => classes.iter().map(|it| text(it, &[])).collect(),
    })
}

/// More products than these are listed by name.
const MOST_PRODUCTS: usize = 10;

fn of_products(
    products: Vec<Product>,
    options: &CapabilitiesOptions,
) -> Result<String, CapabilitiesError> {
    if products.is_empty() {
        let name = options.name.clone().unwrap_or_default();
        return Err(CapabilitiesError::Unknown(name));
    }
    Ok(match options.format {
        TableFormat::Json => safe::json(&JsonOfProducts { products })?,
        TableFormat::Text if products.len() > MOST_PRODUCTS => products::list(&products),
        TableFormat::Text => products
            .iter()
            .map(|it| text(&it.summary, &it.details()))
            .collect(),
    })
}

fn summaries(cluster: &Snapshot, catalog: &Catalog) -> Vec<ClassSummary> {
    cluster
        .view()
        .storage_classes()
        .iter()
        .map(|class| summary(cluster, catalog, class))
        .collect()
}

fn summary(cluster: &Snapshot, catalog: &Catalog, class: &StorageClass) -> ClassSummary {
    let (stated, unreadable) =
        match ClassModes::from_annotations(|key| class.metadata.annotations.get(key)) {
            Ok(stated) => (stated, None),
            Err(error) => (ClassModes::default(), Some(format!("{error}."))),
        };
    let attach = catalog.attach(class.driver(), |driver| cluster.view().csi_driver(driver));
    let mut summary = ClassSummary::new(catalog, class, stated, attach);
    summary.notes.extend(unreadable.map(Into::into));
    summary
}

fn text(class: &ClassSummary, details: &[(&str, &str)]) -> String {
    let title = match &class.title {
        Some(title) => format!("{}, {title}", class.provisioner),
        None => format!("{}, in no catalog", class.provisioner),
    };
    let title = if class.class.is_empty() {
        title
    } else {
        format!("{} ({title})", class.class)
    };
    let mut text = safe::line(&title).into_owned();
    text.push('\n');
    let mut line =
        |name: &str, value: &str| text += &format!("  {name:<10}  {}\n", safe::line(value));
    for (name, modes) in [("Filesystem", &class.filesystem), ("Block", &class.block)] {
        line(name, &granted(modes));
        for conditional in &modes.conditional {
            line(
                "",
                &format!("{}: {}", listed(conditional.modes), conditional.condition),
            );
        }
        if let Some(confidence) = modes.confidence {
            line("", confidence);
        }
    }
    line("Attachment", class.attach);
    line("Node-local", class.node_local);
    for note in &class.notes {
        line("Note", note);
    }
    for (name, value) in details {
        line(name, value);
    }
    text.push('\n');
    text
}

fn granted(summary: &ModeSummary) -> String {
    match summary.modes {
        None => "unknown".to_owned(),
        Some(modes) if modes.is_empty() => "none".to_owned(),
        Some(modes) => listed(modes),
    }
}

fn listed(modes: AccessModes) -> String {
    let names: Vec<&str> = modes.iter().map(AccessMode::name).collect();
    names.join(", ")
}
