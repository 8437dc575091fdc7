//! The functions of the page on which a user pastes a manifest: text in, JSON out, and no other
//! input or output.
//!
//! `docs/site/playground` is the page. A browser and node call the functions through
//! `wasm_bindgen`; tests call them directly.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use check::{NoFiles, Parsed, Reading, Text, parse};
use doctor::diagnosis;
use engine::model::object::ObjectRef;
use engine::policy::Policy;
use engine::rules::codes;
use engine::snapshot::Snapshot;
use engine::storage::Catalog;
use engine::verdict::EffectivePolicy;
use jiff::Timestamp;
use manifest::facts;
use manifest::source::Source;
use report::{Format, Report, Style, Width, products, safe};
use serde::Serialize;
use serde_json::json;
use similar::TextDiff;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen::prelude::wasm_bindgen;

/// The name of the pasted text.
const NAME: &str = "manifest.yaml";
/// The name of the text with the facts of the cluster.
const FACTS: &str = "facts";

/// A cluster that a user can choose.
#[derive(Serialize)]
pub struct Cluster {
    /// The name in links.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Its objects, as `check --facts` reads them.
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

/// For each rule, the section of the runbook about the problem that it prevents.
pub const RUNBOOK: [(&str, &str); 11] = [
    (codes::ROLLING_UPDATE_OVERLAP, "rollout-overlap"),
    (codes::REPLICAS_SHARE_VOLUME, "too-many-replicas"),
    (codes::AUTOSCALER_EXCEEDS_VOLUME, "autoscaler"),
    (codes::WORKLOADS_SHARE_VOLUME, "shared-claim"),
    (codes::SINGLE_POD_VOLUME, "readwriteoncepod-access-mode-already-in-use"),
    (codes::CO_LOCATION_IMPOSSIBLE, "drain-with-co-location"),
    (codes::NO_NODE_FOR_VOLUME, "no-node-for-volume"),
    (codes::UNSUPPORTED_ACCESS_MODE, "unbound-claim"),
    (codes::UNRESOLVED_CLAIM, "unbound-claim"),
    (codes::UNGUARDED_VOLUME, "second-mount"),
    (codes::MISLABELLED_VOLUME, "mislabelled-volume"),
];

/// The choices of the page, and the tables that it shows before anything is pasted.
#[cfg_attr(target_arch = "wasm32", wasm_bindgen)]
pub fn contents() -> String {
    let known =
        Catalog::embedded().map(products::all).ok().and_then(Result::ok).unwrap_or_default();
    json!({
        "clusters": CLUSTERS,
        "runbook": BTreeMap::from(RUNBOOK),
        "columns": products::COLUMNS,
        "storage": products::table(&known),
    })
    .to_string()
}

/// What an error line means.
#[cfg_attr(target_arch = "wasm32", wasm_bindgen)]
pub fn explain(line: &str) -> String {
    json!(diagnosis::explain(line)).to_string()
}

/// A text that is judged. Its findings are known; the rest is made on request.
#[cfg_attr(target_arch = "wasm32", wasm_bindgen)]
pub struct Checked {
    text: String,
    effective: &'static EffectivePolicy,
    parsed: Parsed,
    report: Report,
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen)]
impl Checked {
    /// Judges the text in a cluster with `facts`, which are empty if the cluster is not known.
    /// `now` is in milliseconds.
    ///
    /// # Errors
    /// Fails, with a sentence, if the facts cannot be read.
    #[cfg_attr(target_arch = "wasm32", wasm_bindgen(constructor))]
    pub fn new(text: &str, facts: &str, now: f64) -> Result<Self, String> {
        static POLICY: LazyLock<Result<EffectivePolicy, String>> = LazyLock::new(|| {
            let catalog = Catalog::embedded().map_err(ToString::to_string)?;
            Ok(EffectivePolicy::new(Policy::default(), catalog))
        });
        let effective = POLICY.as_ref().map_err(Clone::clone)?;
        let mut cluster = Snapshot::complete();
        if !facts.trim().is_empty() {
            let source = Source::at_hand(FACTS, facts.to_owned());
            facts::apply(&mut cluster, &[source], Vec::new(), || FACTS.to_owned())
                .map_err(|error| error.to_string())?;
        }
        // Today's times have 13 digits, so the cast loses none of them.
        let now = Timestamp::from_millisecond(now as i64).map_err(|error| error.to_string())?;
        let manifest = Text::read_from(Source::at_hand(NAME, text.to_owned()));
        let reading = Reading::of(vec![manifest], None, &NoFiles);
        let parsed = parse(reading, cluster, now);
        Ok(Self {
            text: text.to_owned(),
            effective,
            report: parsed.report(|_, _| true, effective, &NoFiles, Format::Json),
            parsed,
        })
    }

    /// The summary as a sentence, the objects with their findings, and messages before and after
    /// them as HTML.
    /// The parts of a finding that are shown only when it is opened are in [`Self::details`].
    pub fn verdict(&self) -> String {
        let mut count = 0;
        let objects = self.report.by_object().into_iter().filter_map(|together| {
            let (gravest, first) = *together.first()?;
            let findings = together.into_iter().map(|(severity, located)| {
                count += 1;
                json!({
                    // The argument for `details`.
                    "number": count - 1,
                    "rule": located.finding.rule,
                    "severity": severity,
                    "brief": safe::line(&located.finding.brief),
                    "line": located.place.as_ref().map(|place| place.line.number),
                })
            });
            Some(json!({
                                "severity": gravest,
                "object": safe::line(&first.finding.object.to_string()),
                "findings": findings.collect::<Vec<_>>(),
            }))
        });
        json!({
            "summary": report::summary(&self.report) + why_nothing_was_judged(&self.report),
            "objects": objects.collect::<Vec<_>>(),
            "incomplete": self.report.incomplete(),
            "asides": self.report.asides(),
        })
        .to_string()
    }

    /// The pictures and the long text of a finding, as HTML.
    pub fn details(&self, number: usize) -> String {
        let Some((_, opened)) = self.report.by_object().into_iter().flatten().nth(number) else {
            return String::new();
        };
        let wanted = |_: &Text, object: &ObjectRef| *object == opened.finding.object;
        let mut report = self.parsed.report(wanted, self.effective, &NoFiles, Format::Html);
        report.findings.retain(|located| {
            located.place == opened.place && located.finding.rule == opened.finding.rule
        });
        report.details()
    }

    /// The text with every remedy, and the changes that they make in it.
    pub fn repair(&self) -> String {
        let edits = self.parsed.edits(self.effective, None, false, &NoFiles);
        let edited = edits.files.into_values().next();
        let repaired = edited.map_or_else(|| self.text.clone(), |edited| edited.after);
        let diff = TextDiff::from_lines(&self.text, &repaired).unified_diff().to_string();
        json!({ "repaired": repaired, "diff": diff }).to_string()
    }

    /// The output of `check --format json`.
    ///
    /// # Errors
    /// Fails if the report cannot be written.
    pub fn report(&self) -> Result<String, String> {
        let style =
            Style { colour: false, width: Width::OfWindow(80), summary: false, verbose: false };
        let mut json = Vec::new();
        report::write(&self.report, Format::Json, style, &mut json)
            .map_err(|error| error.to_string())?;
        String::from_utf8(json).map_err(|error| error.to_string())
    }
}

/// Advice for a text in which nothing was judged.
const fn why_nothing_was_judged(report: &Report) -> &'static str {
    if report.summary.judged > 0 || !report.unread.is_empty() {
        ""
    } else if !report.not_judged.is_empty() {
        " Templates have to be rendered first: paste what `helm template` or `kustomize build` prints."
    } else {
        " There is no workload, claim or autoscaler in the text."
    }
}

#[cfg(test)]
mod tests;
