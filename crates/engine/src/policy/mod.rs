//! The policy, which decides the action on each finding.
//!
//! A policy comes from one YAML file, is checked in full when it is read, and is asked in two
//! steps: [`Policy::resolve`] once for an object, then `Resolved::decide` for each finding on it.
//! `docs/policy.md` is its reference.

mod action;
mod decide;
mod error;
mod file;
pub mod keys;
mod matching;
mod overrides;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

pub use crate::analysis::NodeAssumption as Nodes;
pub use action::{Action, RemedyChoice};
pub(crate) use action::{Controlled, Overrides, Strictness};
pub(crate) use decide::Directive;
pub use decide::{Resolved, Suppressed, SuppressedBy, Target};
pub use error::PolicyError;
pub use overrides::{OverrideSource, PassedOver, ignored_rules, ignoring};

use crate::analysis::Certainty;
use crate::model::Text;
use crate::model::de::nullable;
use crate::rules::{Hazard, Outcome, codes};
use crate::storage::ProvisionerOverride;
use file::{Kind, Rule};
use matching::{AccountGlob, Glob, NamespaceMatch};

/// The actions on findings, for a whole cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    defaults: Section,
    nodes: Nodes,
    namespaces: Vec<NamespaceEntry>,
    exemptions: Vec<Exemption>,
    provisioners: Vec<ProvisionerOverride>,
    /// The accounts that may take volumes from nodes that are alive.
    fencing_accounts: Vec<AccountGlob>,
}

impl Policy {
    /// The assumption about the number of nodes.
    pub fn nodes(&self) -> Nodes {
        self.nodes
    }

    /// Whether the account may take the volumes of nodes that are alive.
    pub(crate) fn may_fence(&self, account: &str) -> bool {
        self.fencing_accounts.iter().any(|known| known.0.matches(account))
    }

    /// The exemptions in file order: the line where each begins, counted from 1, and the reason for
    /// it.
    pub fn exemptions(&self) -> impl Iterator<Item = (u64, &str)> {
        self.exemptions.iter().map(|exemption| (exemption.line, exemption.reason.as_str()))
    }

    /// The names of objects of `namespace` that an exemption chooses, as regular expressions.
    pub(crate) fn names_exempt_in(&self, namespace: &str) -> Vec<String> {
        let names: BTreeSet<String> = self
            .exemptions
            .iter()
            .filter(|exemption| {
                is_unset_or_any(&exemption.namespaces, |glob| glob.matches(namespace))
            })
            .flat_map(|exemption| exemption.names.iter().map(Glob::to_regex))
            .collect();
        names.into_iter().collect()
    }

    /// The provisioners that the policy adds to the catalog or corrects in it, in file order, each
    /// name once; for [`Catalog::with_overrides`](crate::storage::Catalog::with_overrides).
    pub(crate) fn provisioners(&self) -> &[ProvisionerOverride] {
        &self.provisioners
    }
}

/// The built-in policy: it denies objects that can never work, warns about hazards that heal, are
/// only assumed or could not be verified, and repairs a leftover `rollingUpdate` block.
impl Default for Policy {
    fn default() -> Self {
        Self {
            defaults: Section {
                outcomes: BTreeMap::from(Outcome::ALL.map(|outcome| (outcome, built_in(outcome)))),
                rules: BTreeMap::from([
                    (Rule(codes::LEFTOVER_ROLLING_UPDATE), Action::Fix),
                    (Rule(codes::UNSUPPORTED_STRATEGY), Action::Warn),
                ]),
                remedy: Some(RemedyChoice::Auto),
                overrides: Some(Overrides::Allow),
                controlled: Some(Controlled::Warn),
                existing: Some(Strictness::Deny),
                too_complex: Some(Strictness::Deny),
                certainty: BTreeMap::from(
                    Certainty::ALL.map(|certainty| (certainty, at_most(certainty))),
                ),
            },
            nodes: Nodes::Auto,
            namespaces: Vec::new(),
            exemptions: Vec::new(),
            provisioners: Vec::new(),
            fencing_accounts: Vec::new(),
        }
    }
}

/// Whether the built-in policy denies a finding with this outcome and certainty.
pub fn is_denied_by_default(outcome: Outcome, certainty: Certainty) -> bool {
    built_in(outcome) == Action::Deny && at_most(certainty) == Action::Deny
}

const fn built_in(outcome: Outcome) -> Action {
    match outcome {
        Outcome::DataLoss | Outcome::Deadlock | Outcome::Stuck | Outcome::Refused => Action::Deny,
        Outcome::Delay | Outcome::Unknown => Action::Warn,
    }
}

/// The strictest action for a finding of that certainty.
const fn at_most(certainty: Certainty) -> Action {
    match certainty {
        Certainty::Verified | Certainty::Likely => Action::Deny,
        Certainty::Assumed => Action::Warn,
    }
}

/// The settings of one section of the file; for `None` and missing keys, the wider section decides.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Section {
    #[serde(deserialize_with = "nullable")]
    outcomes: BTreeMap<Outcome, Action>,
    #[serde(deserialize_with = "nullable")]
    rules: BTreeMap<Rule, Action>,
    remedy: Option<RemedyChoice>,
    overrides: Option<Overrides>,
    controlled: Option<Controlled>,
    existing: Option<Strictness>,
    #[serde(rename = "too-complex")]
    too_complex: Option<Strictness>,
    #[serde(deserialize_with = "nullable")]
    certainty: BTreeMap<Certainty, Action>,
}

impl Section {
    /// The rule's own entry, else its outcome's.
    fn action(&self, hazard: &Hazard) -> Option<Action> {
        self.rules.get(&Rule(hazard.rule)).or_else(|| self.outcomes.get(&hazard.outcome)).copied()
    }

    /// The settings of `narrower`, and those of this section that `narrower` lacks.
    fn overlaid(mut self, narrower: Self) -> Self {
        self.outcomes.extend(narrower.outcomes);
        self.rules.extend(narrower.rules);
        self.certainty.extend(narrower.certainty);
        self.remedy = narrower.remedy.or(self.remedy);
        self.overrides = narrower.overrides.or(self.overrides);
        self.controlled = narrower.controlled.or(self.controlled);
        self.existing = narrower.existing.or(self.existing);
        self.too_complex = narrower.too_complex.or(self.too_complex);
        self
    }
}

/// The settings in the namespaces that match.
#[derive(Clone, Debug, PartialEq)]
struct NamespaceEntry {
    namespaces: NamespaceMatch,
    section: Section,
}

/// Objects and rules that the policy exempts. An empty list matches everything.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exemption {
    #[serde(skip)]
    line: u64,
    #[serde(default)]
    namespaces: Vec<Glob>,
    #[serde(default)]
    kinds: Vec<Kind>,
    #[serde(default)]
    names: Vec<Glob>,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(deserialize_with = "file::reason")]
    reason: Text,
}

impl Exemption {
    fn covers(&self, target: &Target<'_>, rule: &str) -> bool {
        is_unset_or_any(&self.rules, |named| named.0 == rule)
            && is_unset_or_any(&self.kinds, |kind| kind.0 == target.kind)
            && is_unset_or_any(&self.namespaces, |glob| glob.matches(target.namespace))
            && is_unset_or_any(&self.names, |glob| glob.matches(target.name))
    }
}

/// Whether the list is empty, which matches everything, or has an entry that is meant.
fn is_unset_or_any<T>(list: &[T], is_meant: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(is_meant)
}

#[cfg(test)]
mod tests;
