//! Explains why pods wait for volumes, and how to end the wait.
//!
//! * [`diagnosis`] is the interface: it finds the pods that wait, the cause and the commands that
//!   help. It also explains a line from an Event without a cluster. Each cause has its own file in
//!   `cause/`; `causes.yaml` has their order, `judgements.yaml` and `phrases.yaml` their words and
//!   steps, and `messages.yaml` the lines of other programs.
//!
//! The diagnosis takes the observed state of a cluster ([`engine::model::observed`],
//! [`engine::snapshot`]). The result is plain data, which the command line prints:
//!
//! ```
//! use doctor::diagnosis::{DiagnosisInput, cases, explain};
//! use engine::analysis::{Facts, NodeAssumption};
//! use engine::model::observed::Observed;
//! use engine::snapshot::Snapshot;
//! use engine::storage::Catalog;
//! use serde_json::json;
//! use std::collections::HashMap;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut observed = Observed::default();
//! observed.pods.push(serde_json::from_value(json!({
//!     "metadata": {"namespace": "shop", "name": "web"},
//!     "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
//!     "status": {"phase": "Pending"},
//! }))?);
//! let cluster = Snapshot::complete();
//! let input = DiagnosisInput {
//!     objects: Facts {
//!         view: cluster.view(),
//!         catalog: Catalog::embedded()?,
//!         nodes: NodeAssumption::Auto,
//!         rule: None,
//!     },
//!     observed: &observed,
//!     now: "2026-03-01T12:00:00Z".parse()?,
//!     kubectl: "kubectl",
//! };
//! // The claim does not exist. Documents are the objects that a command would change.
//! let found = cases(input, |_| HashMap::new());
//! assert_eq!(found[0].cause, "unbound-claim");
//!
//! let explained = explain("Multi-Attach error for volume \"pv-1\"");
//! assert!(explained.known[0].causes.iter().any(|code| code == "rollout-overlap"));
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here reads a cluster, runs a command or looks at the clock.

mod action;
mod cause;
mod clock;
pub mod command;
mod delivery;
pub mod diagnosis;
mod explain;
mod health;
mod index;
mod messages;
mod node;
mod pasted;
mod remark;
mod report_case;
mod span;
mod told;
mod waiting_pod;
