//! `capabilities`: prints the access modes that each StorageClass can really give.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::cluster::ClusterArgs;
use super::error::CommandError;
use super::output::{self, did_you_mean, print};
use engine::model::object::ObjectKind;
use engine::storage::{Catalog, ClassSummary, ConditionalModes};
use report::products::{self, Product};
use report::safe;
use source::{facts, policy_file};

/// The options of `capabilities`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CapabilitiesOptions {
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

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

pub(super) fn run(options: &CapabilitiesOptions) -> Result<ExitCode, CommandError> {
    Ok(print("capabilities", capabilities(options)?.as_bytes()))
}

fn capabilities(options: &CapabilitiesOptions) -> Result<String, CommandError> {
    let effective = policy_file::effective(options.config.as_deref())?;
    let catalog = effective.catalog();
    if options.markdown {
        return Ok(products::page(&products::all(catalog)?));
    }
    let reads_classes = options.cluster || options.access.is_given() || !options.facts.is_empty();
    if options.all || (options.name.is_some() && !reads_classes) {
        let products = match &options.name {
            Some(name) => match products::named(name, catalog)? {
                none if none.is_empty() => return Err(unknown(name, catalog)),
                products => products,
            },
            None => products::all(catalog)?,
        };
        return of_products(&products, options.format);
    }
    let cluster = if options.facts.is_empty() {
        options
            .access
            .connect()?
            .read(|kind| matches!(kind, ObjectKind::StorageClass | ObjectKind::CsiDriver))?
    } else {
        facts::load(&options.facts, &mut io::empty())?
    };
    let mut classes: Vec<ClassSummary> = cluster
        .view()
        .storage_classes()
        .into_iter()
        .map(|class| ClassSummary::in_view(catalog, class, cluster.view()))
        .collect();
    classes.sort_by(|a, b| a.class.cmp(&b.class));
    if let Some(name) = &options.name {
        classes = products::called(name, classes, |class| class);
        if classes.is_empty() {
            return Err(unknown(name, catalog));
        }
    }
    Ok(match options.format {
        TableFormat::Json => safe::json(&json!({"classes": classes}))?,
        TableFormat::Text if classes.is_empty() => "There is no StorageClass.\n".to_owned(),
        TableFormat::Text => classes.iter().map(|class| text(class, &[])).collect(),
    })
}

/// The number of products above which only their names are listed.
const MOST_PRODUCTS: usize = 10;

fn unknown(name: &str, catalog: &Catalog) -> CommandError {
    let meant = did_you_mean(products::meant(name, catalog).as_deref());
    CommandError::UnknownStorage { name: name.to_owned(), meant }
}

fn of_products(products: &[Product], format: TableFormat) -> Result<String, CommandError> {
    Ok(match format {
        TableFormat::Json => safe::json(&json!({"products": products}))?,
        TableFormat::Text if products.len() > MOST_PRODUCTS => products::list(products),
        TableFormat::Text => {
            products.iter().map(|product| text(&product.summary, &product.details())).collect()
        }
    })
}

fn text(class: &ClassSummary, details: &[(&str, &str)]) -> String {
    let mut text = format!("{}\n", safe::line(&class.heading()));
    let mut line = |name: &str, value: &str| {
        text += &output::line(&format!("  {name:<10}  "), &safe::line(value));
    };
    let (files, blocks) = (&class.filesystem, &class.block);
    // What holds for both is said once.
    let (both, of_files): (Vec<_>, Vec<_>) =
        files.conditional.iter().partition(|one| blocks.conditional.contains(one));
    let of_blocks = blocks.conditional.iter().filter(|one| !both.contains(one)).collect();
    let is_as_sure = files.confidence == blocks.confidence;
    for (name, modes, conditional) in
        [("Filesystem", files, of_files), ("Block", blocks, of_blocks)]
    {
        line(name, &modes.granted());
        conditional.into_iter().for_each(|one| line("", &on_condition(one)));
        modes.confidence.filter(|_| !is_as_sure).into_iter().for_each(|words| line("", words));
    }
    for (number, one) in both.into_iter().enumerate() {
        line(if number == 0 { "Both" } else { "" }, &on_condition(one));
    }
    files.confidence.filter(|_| is_as_sure).into_iter().for_each(|words| line("Confidence", words));
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

fn on_condition(one: &ConditionalModes) -> String {
    format!("{}: {}", one.modes, one.condition)
}
