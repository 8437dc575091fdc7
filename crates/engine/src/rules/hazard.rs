//! What a rule finds.

use std::collections::HashSet;

use super::{Certainty, Outcome};
use crate::model::Text;

/// What a rule finds: facts, their consequence, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// The rule's public name.
    pub rule: &'static str,
    /// What happens if nobody intervenes.
    pub outcome: Outcome,
    /// How sure it is: as sure as the surest of the volumes that bring it about.
    pub certainty: Certainty,
    /// The field at fault, `spec.strategy` for example.
    pub field_path: String,
    /// The claims and volumes concerned, by name.
    pub volumes: Vec<Text>,
    /// How many pods, workloads or the like are too many: more is worse.
    pub excess: i64,
    /// The fact seen and its consequence: a sentence that starts in lower case,
    /// as the object's name is put before it, and ends with a full stop.
    pub what: String,
    /// What to do: sentences.
    pub advice: String,
    /// The same in a few words, for a warning line.
    pub brief: String,
}

/// The brief text with a condition under which it is true, once, before the part that says what
/// to do.
pub(crate) fn supposed(brief: &str, condition: &str) -> String {
    if brief.contains(&format!(" ({condition})")) {
        return brief.to_owned();
    }
    match brief.split_once(';') {
        Some((consequence, step)) => format!("{consequence} ({condition});{step}"),
        None => format!("{brief} ({condition})"),
    }
}

impl Hazard {
    fn volumes_are_among(&self, old: &[Text]) -> bool {
        // Nearly always they are the same; if not, there may be thousands.
        if self.volumes == old {
            return true;
        }
        let old: HashSet<&Text> = old.iter().collect();
        self.volumes.iter().all(|volume| old.contains(volume))
    }

    /// Whether this hazard was there before in full: the same rule, on volumes
    /// that were concerned then too, no graver and no larger.
    pub(crate) fn is_covered_by(&self, old: &Self) -> bool {
        self.rule == old.rule
            && self.outcome >= old.outcome
            && self.excess <= old.excess
            && self.volumes_are_among(&old.volumes)
    }
}
