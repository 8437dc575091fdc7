//! What only a live cluster has: pods that wait, who writes an object, overrides.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use doctor::diagnosis::{CaseEntry, Purpose};
use engine::model::object::ObjectRef;

/// Which cluster a report is about, and when it was so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What the reader calls the cluster.
    pub cluster: String,
    /// The namespace, where the report is about one only.
    pub namespace: Option<String>,
    /// The time of the cluster's clock.
    pub at: Timestamp,
}

/// Pods that wait for a volume now.
#[derive(Clone, Debug, Serialize)]
pub struct Stuck {
    /// Who waits, why, and the way out.
    #[serde(flatten)]
    pub case: CaseEntry,
    /// Who writes the workload that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Whether an earlier report lacks it; `None` without one.
    #[serde(rename = "isNew", skip_serializing_if = "Option::is_none")]
    pub is_new: Option<bool>,
}

impl Stuck {
    /// Whether it is news that somebody has to act on.
    pub fn fails(&self) -> bool {
        !self.case.passes && self.is_new != Some(false)
    }

    /// The command that ends the wait, the safest one, with its cost.
    pub(super) fn way_out(&self) -> Option<(&str, &str)> {
        let mut steps = self.case.steps.iter();
        let step = steps.find(|it| it.purpose == Purpose::WayOut && it.command.is_some())?;
        Some((step.command.as_deref()?, &step.text))
    }

    /// The claim, as `PersistentVolumeClaim shop/data`.
    pub(super) fn claim(&self) -> String {
        let volume = &self.case.volume;
        format!(
            "PersistentVolumeClaim {}/{}",
            volume.namespace, volume.claim
        )
    }
}

/// Who writes a live object, so that a change of the object alone would not stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// As in "Helm release web".
    pub name: String,
    /// Where the change belongs: a sentence.
    pub change: String,
    /// The command that shows what to change there, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.name, self.change)
    }
}

/// An object that the policy treats otherwise because its annotations ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    /// The object, or a Namespace with all in it.
    pub object: ObjectRef,
    /// The keys without their prefix, and their values.
    pub sets: BTreeMap<&'static str, String>,
    /// Why, in somebody's words; empty where they gave none.
    pub reason: String,
    /// Which client wrote the annotations last.
    pub by: Option<String>,
    /// When that was.
    pub since: Option<Timestamp>,
    /// Its end, as written.
    pub until: Option<String>,
    /// Why it does not count: a sentence.
    pub ignored: Option<String>,
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets: Vec<String> = self
            .sets
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        write!(f, "{}: {}", self.object, sets.join(", "))?;
        if !self.reason.is_empty() {
            write!(f, ", \"{}\"", self.reason)?;
        }
        match (&self.by, self.since) {
            (Some(by), Some(since)) => write!(f, "; last written by {by} at {since:.0}")?,
            (Some(by), None) => write!(f, "; last written by {by}")?,
            _ => f.write_str("; it is not known since when and by whom")?,
        }
        match &self.until {
            Some(until) => write!(f, "; until {until}.")?,
            None => f.write_str("; no end.")?,
        }
        match &self.ignored {
            Some(why) => write!(f, " It does not count: {why}"),
            None => Ok(()),
        }
    }
}
