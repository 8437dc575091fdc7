//! Checks manifests: its input is texts and facts, and its output is findings with their places,
//! and repaired texts.
//!
//! In the pipeline, each stage has one type of value:
//!
//! ```text
//! texts ─▶ read ─▶ parse ─▶ scope ─▶ judge ─▶ findings
//!          Reading  Parsed   Scopes   Judged   Report
//!                     └────▶ repair ─▶ Edits
//! ```
//!
//! Each text names its origin. Only the texts are read and, through [`Files`], the files from which
//! they were rendered. Therefore the crate also works without a file system and without threads:
//!
//! ```
//! use check::{NoFiles, Reading, Text, parse};
//! use engine::policy::Policy;
//! use engine::snapshot::Snapshot;
//! use engine::storage::Catalog;
//! use engine::verdict::EffectivePolicy;
//! use manifest::source::Source;
//! use report::Format;
//!
//! # let manifest = "
//! # apiVersion: v1
//! # kind: PersistentVolumeClaim
//! # metadata: {name: data}
//! # spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}
//! # ---
//! # apiVersion: apps/v1
//! # kind: Deployment
//! # metadata: {name: web}
//! # spec:
//! #   selector: {matchLabels: {app: web}}
//! #   template:
//! #     metadata: {labels: {app: web}}
//! #     spec:
//! #       containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]
//! #       volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
//! # ".to_owned();
//! let policy = EffectivePolicy::new(Policy::default(), Catalog::embedded()?);
//! let text = Text::read_from(Source::at_hand("web.yaml", manifest));
//! let reading = Reading::of(vec![text], None, &NoFiles);
//! let parsed = parse(reading, Snapshot::complete(), jiff::Timestamp::UNIX_EPOCH);
//!
//! let report = parsed.report(|_, _| true, &policy, &NoFiles, Format::Text);
//! let found = &report.findings[0];
//! assert_eq!(found.finding.rule, "rolling-update-overlap");
//! assert_eq!(found.place.as_ref().map(|place| place.line.number), Some(10));
//!
//! let edited = parsed.edits(&policy, None, false, &NoFiles).files;
//! let edited = edited.values().next().map(|edited| edited.after.as_str());
//! assert!(edited.is_some_and(|text| text.contains("type: Recreate")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod about;
mod excerpts;
mod files;
mod findings;
mod fold;
mod hints;
pub mod hunk;
mod ids;
mod judge;
mod line;
mod made_classes;
mod merge_patch;
mod namespace;
mod neighbours;
mod parse;
mod reading;
mod repair;
mod rules;
mod scope;
pub mod text;
mod unused_suppressions;
mod written;

pub use files::{Files, NoFiles};
pub use hints::Hints;
pub use parse::{Parsed, parse};
pub use reading::{Reading, unread};
pub use repair::{Edited, Edits};
pub use rules::Rules;
pub use text::Text;
pub use unused_suppressions::unused_exemptions;

use engine::model::object::ObjectRef;
use engine::verdict::EffectivePolicy;
use judge::Subject;
#[cfg(feature = "threads")]
use rayon::prelude::*;
use scope::Scopes;

impl Parsed {
    /// Judges the objects that are `wanted` in their texts and places the findings in their files;
    /// the other objects remain facts for them.
    pub fn report(
        &self,
        wanted: impl Fn(&Text, &ObjectRef) -> bool + Sync,
        effective: &EffectivePolicy,
        files: &dyn Files,
        format: report::Format,
    ) -> report::Report {
        let scopes = Scopes::of(self);
        let groups = scopes.groups();
        #[cfg(feature = "threads")]
        let groups = groups.into_par_iter();
        #[cfg(not(feature = "threads"))]
        let groups = groups.into_iter();
        let placed = groups.map(|group| {
            let judged = group
                .iter()
                .map(|id| (id, self.object(*id)))
                .filter(|(_, known)| wanted(self.text(known), &known.reference))
                .filter_map(|(id, _)| Subject::of(&scopes, *id).judge(effective))
                .collect();
            findings::place(self, files, format, judged)
        });
        findings::collect(self, placed.collect(), format)
    }
}
