//! The policy file: its schema, and the conversion to a [`Policy`].
//!
//! Each type here is one part of the YAML and refuses unknown words when it is read, so that every
//! error has its place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_saphyr::Spanned;

use crate::analysis::Certainty;
use crate::model::Text;
use crate::model::de::nullable;
use crate::model::selector::{Operator, Requirement};
use crate::model::workload::WorkloadKind;
use crate::rules::{Outcome, codes};
use crate::storage::ProvisionerOverride;

use super::action::{Action, Controlled, Overrides, RemedyChoice, Strictness};
use super::matching::{AccountGlob, Glob, NamespaceMatch};
use super::{Exemption, NamespaceEntry, Nodes, Policy, PolicyError, Section};

/// The kinds besides workloads about which findings are reported.
const OTHER_KINDS: [&str; 5] = [
    "HorizontalPodAutoscaler",
    "Node",
    "PersistentVolumeClaim",
    "ScaledObject",
    "VolumeAttachment",
];

/// The kinds about which findings are reported.
static KINDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut kinds: Vec<_> =
        WorkloadKind::ALL.into_iter().map(WorkloadKind::name).chain(OTHER_KINDS).collect();
    kinds.sort_unstable();
    kinds
});

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(deserialize_with = "nullable")]
    defaults: Section,
    nodes: Option<Nodes>,
    #[serde(deserialize_with = "nullable")]
    namespaces: Vec<Entry>,
    #[serde(deserialize_with = "nullable")]
    exemptions: Vec<Spanned<Exemption>>,
    #[serde(deserialize_with = "nullable")]
    provisioners: Vec<Spanned<ProvisionerOverride>>,
    #[serde(deserialize_with = "nullable")]
    fencing: Fencing,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fencing {
    #[serde(deserialize_with = "nullable")]
    accounts: Vec<AccountGlob>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    r#match: Spanned<Match>,
    #[serde(default, deserialize_with = "nullable")]
    outcomes: BTreeMap<Outcome, Action>,
    #[serde(default, deserialize_with = "nullable")]
    rules: BTreeMap<Rule, Action>,
    remedy: Option<RemedyChoice>,
    overrides: Option<Overrides>,
    controlled: Option<Controlled>,
    existing: Option<Strictness>,
    #[serde(rename = "too-complex")]
    too_complex: Option<Strictness>,
    #[serde(default, deserialize_with = "nullable")]
    certainty: BTreeMap<Certainty, Action>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Match {
    #[serde(deserialize_with = "nullable")]
    names: Vec<Glob>,
    #[serde(deserialize_with = "nullable")]
    selector: Selector,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Selector {
    #[serde(deserialize_with = "nullable")]
    match_labels: BTreeMap<Text, Text>,
    #[serde(deserialize_with = "nullable")]
    match_expressions: Vec<Spanned<Expression>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expression {
    key: Text,
    #[serde(with = "Comparison")]
    operator: Operator,
    #[serde(default, deserialize_with = "nullable")]
    values: Box<[Text]>,
}

/// The operators of a label selector.
#[derive(Deserialize)]
#[serde(remote = "Operator")]
enum Comparison {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// The code of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule(pub(super) &'static str);

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = Text::deserialize(deserializer)?;
        codes::find(&code).map(Self).ok_or_else(|| D::Error::unknown_variant(&code, &codes::ALL))
    }
}

/// A kind about which findings are reported.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind(pub(super) &'static str);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = Text::deserialize(deserializer)?;
        KINDS
            .iter()
            .find(|known| **known == kind)
            .map(|known| Self(known))
            .ok_or_else(|| D::Error::unknown_variant(&kind, &KINDS))
    }
}

/// Reads a reason that is not empty.
pub(super) fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    let reason = Text::deserialize(deserializer)?;
    if reason.trim().is_empty() {
        return Err(D::Error::custom(
            "the reason is empty; say in a few words why these objects are exempt",
        ));
    }
    Ok(reason.trim().into())
}

impl Policy {
    /// Reads a policy. `file` is the name used in errors.
    ///
    /// Settings that the text leaves out are as in [`Policy::default`]; an empty text is the
    /// built-in policy.
    ///
    /// # Errors
    ///
    /// The first word in the text that the policy does not know or cannot use, or the first bytes
    /// that are not UTF-8, each with its place.
    // Generic, so that the YAML reader is compiled in the crate that calls this, for size. It would
    // be a fifth of this crate, which is compiled for speed.
    pub fn parse(content: impl AsRef<[u8]>, file: &str) -> Result<Self, PolicyError> {
        let bytes = content.as_ref();
        let text = str::from_utf8(bytes).map_err(|error| {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            PolicyError::not_text(file, &String::from_utf8_lossy(good))
        })?;
        let options = serde_saphyr::options! { with_snippet: false };
        let read = serde_saphyr::from_str_with_options::<Option<File>>(text, options)
            .map_err(|error| PolicyError::from_yaml(file, &error))?
            .unwrap_or_default();
        let built_in = Self::default();
        Ok(Self {
            defaults: built_in.defaults.overlaid(read.defaults),
            nodes: read.nodes.unwrap_or(built_in.nodes),
            namespaces: read
                .namespaces
                .into_iter()
                .map(|entry| namespace_entry(entry, file))
                .collect::<Result<_, _>>()?,
            exemptions: read
                .exemptions
                .into_iter()
                .map(|entry| exemption(entry, file))
                .collect::<Result<_, _>>()?,
            provisioners: provisioners(read.provisioners, file)?,
            fencing_accounts: read.fencing.accounts,
        })
    }
}

fn namespace_entry(entry: Entry, file: &str) -> Result<NamespaceEntry, PolicyError> {
    let place = entry.r#match.referenced;
    let Match { names, selector } = entry.r#match.value;
    let labels = selector.match_labels.into_iter().map(|(key, value)| {
        Ok(Requirement { key, operator: Operator::In, values: Box::new([value]) })
    });
    let expressions =
        selector.match_expressions.into_iter().map(|expression| requirement(expression, file));
    let namespaces = NamespaceMatch {
        names,
        requirements: labels.chain(expressions).collect::<Result<_, _>>()?,
    };
    if namespaces.names.is_empty() && namespaces.requirements.is_empty() {
        let problem = "this would match every namespace; give \"names\" or a \"selector\", \
                       or write the settings under \"defaults\"";
        return Err(PolicyError::senseless(file, place, problem));
    }
    Ok(NamespaceEntry {
        namespaces,
        section: Section {
            outcomes: entry.outcomes,
            rules: entry.rules,
            remedy: entry.remedy,
            overrides: entry.overrides,
            controlled: entry.controlled,
            existing: entry.existing,
            too_complex: entry.too_complex,
            certainty: entry.certainty,
        },
    })
}

fn requirement(read: Spanned<Expression>, file: &str) -> Result<Requirement, PolicyError> {
    let expression = read.value;
    let problem = match (expression.operator, expression.values.is_empty()) {
        (Operator::In | Operator::NotIn, true) => {
            Some("In and NotIn compare with \"values\"; give at least one")
        }
        (Operator::Exists | Operator::DoesNotExist, false) => {
            Some("Exists and DoesNotExist take no \"values\"; remove them")
        }
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(PolicyError::senseless(file, read.referenced, problem));
    }
    let Expression { key, operator, values } = expression;
    Ok(Requirement { key, operator, values })
}

fn exemption(read: Spanned<Exemption>, file: &str) -> Result<Exemption, PolicyError> {
    let mut exempt = read.value;
    exempt.line = read.referenced.line();
    if exempt.namespaces.is_empty()
        && exempt.kinds.is_empty()
        && exempt.names.is_empty()
        && exempt.rules.is_empty()
    {
        let problem = "this would exempt everything; give at least one of \"namespaces\", \
                       \"kinds\", \"names\" and \"rules\"";
        return Err(PolicyError::senseless(file, read.referenced, problem));
    }
    Ok(exempt)
}

fn provisioners(
    read: Vec<Spanned<ProvisionerOverride>>,
    file: &str,
) -> Result<Vec<ProvisionerOverride>, PolicyError> {
    let mut known: Vec<ProvisionerOverride> = Vec::with_capacity(read.len());
    for entry in read {
        let value = entry.value;
        let twice = known.iter().any(|earlier| earlier.name == value.name).then(|| {
            let name = &value.name;
            format!("the policy names provisioner {name:?} twice; keep one of the two")
        });
        if let Some(problem) = value.fault().or(twice) {
            return Err(PolicyError::senseless(file, entry.referenced, problem));
        }
        known.push(value);
    }
    Ok(known)
}
