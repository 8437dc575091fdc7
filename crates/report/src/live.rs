//! The parts of a report that only a live cluster has: pods that wait, owners of objects,
//! overrides.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use doctor::diagnosis::CaseEntry;
use engine::model::object::ObjectRef;

/// The cluster that a report is about, and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The reader's name for the cluster.
    pub cluster: String,
    /// The namespace, if the report is about only one.
    pub namespace: Option<String>,
    /// The time according to the cluster's clock.
    pub at: Timestamp,
}

/// Pods that wait for a volume now.
#[derive(Clone, Debug, Serialize)]
pub struct Stuck {
    /// The waiting pods, the reason, and the way out.
    #[serde(flatten)]
    pub case: CaseEntry,
    /// The owner that writes the waiting workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Whether an earlier report lacks it; `None` if there is no earlier report.
    #[serde(rename = "isNew", skip_serializing_if = "Option::is_none")]
    pub is_new: Option<bool>,
}

impl Stuck {
    /// Whether it is new and somebody has to act on it.
    pub fn fails(&self) -> bool {
        !self.case.passes && self.is_new != Some(false)
    }
}

/// The owner that writes a live object, and would undo a change of the object alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// The name, for example "Helm release web".
    pub name: String,
    /// The place in which the change must be made: a sentence.
    pub change: String,
    /// The command that shows what to change there, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.name, self.change)
    }
}

/// Annotations on an object that change how the policy treats it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    /// The object, or a Namespace with all objects in it.
    pub object: ObjectRef,
    /// The keys without their prefix, and their values.
    pub sets: BTreeMap<&'static str, String>,
    /// The reason that the author gave; empty if there is none.
    pub reason: String,
    /// The client that last wrote the annotations.
    pub by: Option<String>,
    /// The time of that write.
    pub since: Option<Timestamp>,
    /// The end of the override, as written.
    pub until: Option<String>,
    /// The reason why it has no effect: a sentence.
    pub ignored: Option<String>,
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets: Vec<String> =
            self.sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
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
