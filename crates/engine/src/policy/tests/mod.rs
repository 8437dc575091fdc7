mod bad_files;
mod decisions;
mod documents;
mod overrides;

use jiff::{Timestamp, ToSpan};

use super::{Policy, Target};
use crate::model::labels::Labels;

fn policy(text: &str) -> Policy {
    Policy::parse(text, "policy.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

/// An object with everything a scope borrows, to be varied by each test.
#[derive(Clone)]
struct Object {
    namespace: &'static str,
    namespace_labels: Option<Labels>,
    namespace_annotations: Option<Labels>,
    kind: &'static str,
    name: &'static str,
    annotations: Labels,
    controlled: bool,
}

impl Default for Object {
    fn default() -> Self {
        Self {
            namespace: "shop",
            namespace_labels: Some(Labels::default()),
            namespace_annotations: Some(Labels::default()),
            kind: "Deployment",
            name: "web",
            annotations: Labels::default(),
            controlled: false,
        }
    }
}

impl Object {
    fn target(&self) -> Target<'_> {
        Target {
            namespace: self.namespace,
            namespace_labels: self.namespace_labels.as_ref(),
            namespace_annotations: self.namespace_annotations.as_ref(),
            kind: self.kind,
            name: self.name,
            annotations: &self.annotations,
            controlled: self.controlled,
            now: Some(Timestamp::UNIX_EPOCH + (365 * 30 * 24).hours()),
        }
    }
}
