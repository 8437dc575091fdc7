//! The page on which a manifest is pasted: text in, JSON out, no input or output of its own.
//!
//! `docs/site/playground` is the page. A browser and node call `exports`, tests the functions
//! that it calls.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use check::{NoFiles, Reading, Repair, Text, parse};
use doctor::diagnosis;
use engine::policy::Policy;
use engine::rules::codes;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use engine::verdict::{EffectivePolicy, Mode};
use jiff::Timestamp;
use manifest::facts;
use manifest::source::Source;
use report::{Format, Style, products};
use serde::Serialize;
use similar::TextDiff;

/// The functions under the names that the page knows.
#[cfg(target_arch = "wasm32")]
pub mod exports {
    use wasm_bindgen::prelude::wasm_bindgen;

    /// What is found in a text, with the time in milliseconds.
    #[wasm_bindgen]
    pub fn check(text: &str, facts: &str, now: f64) -> String {
        super::check(text, facts, now)
    }

    /// What an error line means, or `null`.
    #[wasm_bindgen]
    pub fn explain(line: &str) -> String {
        super::explain(line)
    }

    /// What the page offers and shows before anything is pasted.
    #[wasm_bindgen]
    pub fn contents() -> String {
        super::contents()
    }
}

/// The name of what is pasted.
const NAME: &str = "manifest.yaml";
/// The name of what the cluster has.
const FACTS: &str = "facts";

/// A cluster to choose.
#[derive(Serialize)]
pub struct Cluster {
    /// As links hold it.
    pub name: &'static str,
    /// As people call it.
    pub title: &'static str,
    /// What it has, as `check --facts` reads it.
    pub facts: &'static str,
}

macro_rules! clusters {
    ($($name:literal $title:literal,)+) => {
        /// The clusters to choose from.
        pub const CLUSTERS: &[Cluster] = &[$(Cluster {
            name: $name,
            title: $title,
            facts: include_str!(concat!("clusters/", $name, ".yaml")),
        }),+];
    };
}

clusters! {
    "eks" "Amazon EKS",
    "aks" "Azure AKS",
    "gke" "Google GKE",
    "openshift" "OpenShift",
    "k3s" "k3s",
    "longhorn" "Longhorn",
    "ceph" "Ceph (Rook)",
    "one-node" "one node",
}

/// Where the runbook describes what a rule keeps from happening.
pub const RUNBOOK: [(&str, &str); 11] = [
    (codes::ROLLING_UPDATE_OVERLAP, "rollout-overlap"),
    (codes::REPLICAS_SHARE_VOLUME, "too-many-replicas"),
    (codes::AUTOSCALER_EXCEEDS_VOLUME, "autoscaler"),
    (codes::WORKLOADS_SHARE_VOLUME, "shared-claim"),
    (
        codes::SINGLE_POD_VOLUME,
        "readwriteoncepod-access-mode-already-in-use",
    ),
    (codes::CO_LOCATION_IMPOSSIBLE, "drain-with-co-location"),
    (codes::NO_NODE_FOR_VOLUME, "no-node-for-volume"),
    (codes::UNSUPPORTED_ACCESS_MODE, "unbound-claim"),
    (codes::UNRESOLVED_CLAIM, "unbound-claim"),
    (codes::UNGUARDED_VOLUME, "second-mount"),
    (codes::MISLABELLED_VOLUME, "mislabelled-volume"),
];

#[derive(Serialize)]
struct Contents {
    clusters: &'static [Cluster],
    runbook: BTreeMap<&'static str, &'static str>,
    columns: [&'static str; 7],
    storage: Vec<(String, [String; 7])>,
}

/// What the page offers and shows before anything is pasted.
#[must_use]
pub fn contents() -> String {
    let known = Catalog::embedded().map(products::all);
    let known = known.ok().and_then(Result::ok).unwrap_or_default();
    let storage = products::table(&known).into_iter();
    json(&Contents {
        clusters: CLUSTERS,
        runbook: RUNBOOK.into(),
        columns: products::COLUMNS,
        storage: storage.map(|(part, row)| (part.to_owned(), row)).collect(),
    })
}

/// What an error line means, or `null`.
#[must_use]
pub fn explain(line: &str) -> String {
    json(&diagnosis::explain(line))
}

/// What is found in a text.
#[derive(Serialize)]
struct Checked {
    /// A sentence.
    summary: String,
    /// The cards of the HTML report.
    html: String,
    /// The JSON report.
    json: String,
    /// The text with every remedy.
    repaired: String,
    /// What the remedies change.
    diff: String,
}

/// Why a text was not judged.
#[derive(Serialize)]
struct Problem {
    problem: String,
}

/// What is found in `text` in a cluster with `facts`, none for one that is not known. `now` is
/// in milliseconds.
#[must_use]
pub fn check(text: &str, facts: &str, now: f64) -> String {
    match checked(text, facts, now) {
        Ok(checked) => json(&checked),
        Err(problem) => json(&Problem { problem }),
    }
}

fn checked(text: &str, facts: &str, now: f64) -> Result<Checked, String> {
    static POLICY: LazyLock<Result<EffectivePolicy, String>> = LazyLock::new(|| {
        let catalog = Catalog::embedded().map_err(ToString::to_string)?;
        EffectivePolicy::new(Policy::default(), catalog).map_err(|error| error.to_string())
    });
    let effective = POLICY.as_ref().map_err(Clone::clone)?;
    let mut cluster = Snapshot::complete();
    if !facts.trim().is_empty() {
        let source = Source::at_hand(FACTS, facts.to_owned());
        facts::apply(&mut cluster, &[source], Vec::new(), || FACTS.to_owned())
            .map_err(|error| error.to_string())?;
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a time of today has 13 digits"
    )]
    let now = Timestamp::from_millisecond(now as i64).map_err(|error| error.to_string())?;
    let manifest = Text::read_from(Source::at_hand(NAME, text.to_owned()));
    let reading = Reading::of(vec![manifest], None, &NoFiles, || {});
    let parsed = parse(reading, cluster, now);
    let report = parsed.report(effective, &NoFiles, Format::Html);
    let mut repaired = text.to_owned();
    let mut found = report.findings.iter();
    if found.any(|located| !located.finding.remedies.is_empty()) {
        let repair = Repair {
            parsed: &parsed,
            effective,
            mode: Mode::Repair { remedy: None },
            files: &NoFiles,
        };
        let edited = repair.edits().files.into_values().next();
        repaired = edited.map_or(repaired, |edited| edited.after);
    }
    let (summary, html) = report::html_content(&report);
    Ok(Checked {
        summary: summary + nothing(&report.summary),
        html,
        json: written(&report)?,
        diff: TextDiff::from_lines(text, &repaired)
            .unified_diff()
            .to_string(),
        repaired,
    })
}

/// What to do where nothing was judged.
const fn nothing(summary: &report::Summary) -> &'static str {
    match summary {
        report::Summary { judged: 1.., .. }
        | report::Summary {
            unreadable: 1.., ..
        } => "",
        report::Summary { templates: 1.., .. } => {
            " Templates have to be rendered first: paste what `helm template` or `kustomize build` prints."
        }
        _ => " There is no workload, claim or autoscaler in the text.",
    }
}

fn written(report: &report::Report) -> Result<String, String> {
    let style = Style {
        colour: false,
        width: 80,
        summary: false,
        verbose: false,
    };
    let mut json = Vec::new();
    report::write(report, Format::Json, style, &mut json).map_err(|error| error.to_string())?;
    String::from_utf8(json).map_err(|error| error.to_string())
}

/// Text that is written as it is read, which cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
