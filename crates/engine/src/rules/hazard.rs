//! What a rule finds.

use hashbrown::HashSet;

use super::{Certainty, Outcome};
use crate::model::Text;

/// The result of a rule: facts, their consequence, and the advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hazard {
    /// The rule's public name.
    pub rule: &'static str,
    /// The outcome if nobody intervenes.
    pub outcome: Outcome,
    /// The certainty: that of the surest of the volumes that cause the hazard.
    pub certainty: Certainty,
    /// The field at fault, `spec.strategy` for example.
    pub field_path: String,
    /// The claims and volumes concerned, by name.
    pub volumes: Vec<Text>,
    /// The size of the hazard in pods, workloads or the like: more is worse.
    pub excess: i64,
    /// The fact seen and its consequence: a sentence that starts in lower case, as the object's
    /// name is put before it, and ends with a full stop.
    pub what: String,
    /// The advice: sentences.
    pub advice: String,
    /// The consequence and the advice in a few words, for a warning line.
    pub brief: String,
}

/// The brief text with a condition under which it is true, before the part that says what to do. A
/// condition is added only once.
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
    /// A verified hazard that `rule` finds, to be filled in.
    pub(crate) const fn new(rule: &'static str, outcome: Outcome) -> Self {
        Self {
            rule,
            outcome,
            certainty: Certainty::Verified,
            field_path: String::new(),
            volumes: Vec::new(),
            excess: 0,
            what: String::new(),
            advice: String::new(),
            brief: String::new(),
        }
    }

    /// Whether this hazard existed before in full: the same rule, on volumes that were concerned
    /// then too, no graver and no larger.
    pub(crate) fn is_covered_by(&self, old: &Self) -> bool {
        let volumes_are_among = || {
            // Nearly always they are the same; if not, there may be thousands.
            self.volumes == old.volumes || {
                let old: HashSet<&Text> = old.volumes.iter().collect();
                self.volumes.iter().all(|volume| old.contains(volume))
            }
        };
        self.rule == old.rule
            && self.outcome >= old.outcome
            && self.excess <= old.excess
            && volumes_are_among()
    }
}
