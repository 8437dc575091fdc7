//! Conditions under which a provisioner gives other access modes than usual.

use std::fmt;

use serde::Deserialize;

use super::modes;
use super::reach::Reach;
use super::second_use::SecondUse;
use crate::model::Text;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::model::labels::Labels;
use crate::model::words::listed;

/// The claim for which a condition is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Claimant {
    /// Whether it names a snapshot or another claim to start from (`spec.dataSource` or
    /// `spec.dataSourceRef`); `None` if there is no claim.
    pub(super) has_data_source: Option<bool>,
    /// Whether it names a VolumeAttributesClass; the class itself is not known.
    pub(super) has_attributes_class: bool,
}

/// One condition of a catalog entry and its effects.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Condition {
    /// The property that must hold.
    pub(super) when: When,
    #[serde(default, deserialize_with = "modes::exact")]
    filesystem_add: Option<AccessModes>,
    #[serde(default, deserialize_with = "modes::exact")]
    filesystem_set: Option<AccessModes>,
    #[serde(default, deserialize_with = "modes::exact")]
    block_add: Option<AccessModes>,
    #[serde(default, deserialize_with = "modes::exact")]
    block_set: Option<AccessModes>,
    /// Whether the volumes are then bound to one node; `None` if the condition does not change
    /// that.
    pub(super) node_local: Option<bool>,
    /// Whether such volumes then carry the node affinity that keeps pods there; `None` if the
    /// condition does not change that.
    pub(super) pv_node_affinity: Option<bool>,
    /// The reach of the volumes then; `None` if the condition does not change it.
    pub(super) reach: Option<Reach>,
    /// The result of a second use then; `None` if the condition does not change it.
    pub(super) second_use: Option<SecondUse>,
    /// A sentence to show if the condition holds.
    pub(super) note: Option<Text>,
}

/// The effect of a met condition on the modes of one volume mode: `set` replaces all modes that
/// other conditions add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Modes granted in addition.
    pub(super) add: AccessModes,
    /// Modes granted instead.
    pub(super) set: Option<AccessModes>,
}

impl Effect {
    /// Every mode this effect can grant.
    pub(super) fn grants(self) -> AccessModes {
        self.add.union(self.set.unwrap_or_default())
    }
}

/// The property that a condition tests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawWhen")]
pub(super) enum When {
    /// A parameter of the StorageClass.
    Parameter {
        /// The parameter's key.
        key: Text,
        /// Its other keys.
        aliases: Vec<Text>,
        /// The condition on its value.
        test: Test,
        /// Whether the driver ignores the case of key and value.
        ignore_case: bool,
        /// Whether a VolumeAttributesClass that the claim names may set it too, with precedence.
        by_attributes_class: bool,
    },
    /// The claim names a snapshot or another claim to start from
    /// (`spec.dataSource` or `spec.dataSourceRef`).
    DataSource,
    /// The claim itself requests this mode.
    ClaimAsks(AccessMode),
    /// A property that the objects of a cluster do not show, in words that complete "possible only
    /// when …".
    Setup(Text),
}

/// A condition on a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// One of these values.
    Is(Vec<Text>),
    /// Starts with this text.
    Prefix(Text),
    /// Ends with this text.
    Suffix(Text),
    /// A whole number, at least this large.
    AtLeast(u64),
    /// A list that contains none of these words.
    Lacks(Vec<Text>),
    /// Any spelling of this truth value (Go's `strconv.ParseBool`).
    Bool(bool),
    /// Set to anything if `true`, not set if `false`.
    Present(bool),
}

/// Whether a condition holds for a class and a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionState {
    /// It holds.
    Met,
    /// It does not hold, as the objects in view show.
    NotMet,
    /// The claim decides, but the claim, a part of it or an object that it names is not known.
    UpToClaim,
    /// No object shows it.
    Hidden,
}

impl Condition {
    /// The effect of the condition on volumes of this mode, once it is met.
    pub(super) fn effect(&self, mode: VolumeMode) -> Effect {
        let (add, set) = match mode {
            VolumeMode::Filesystem => (self.filesystem_add, self.filesystem_set),
            VolumeMode::Block => (self.block_add, self.block_set),
        };
        Effect { add: add.unwrap_or_default(), set }
    }

    /// Whether the condition holds for these class parameters and this claim.
    pub(super) fn state(&self, parameters: &Labels, claim: Claimant) -> ConditionState {
        let met = match &self.when {
            When::Parameter { key, aliases, test, ignore_case, by_attributes_class } => {
                let is_key = |name| {
                    std::iter::once(key).chain(aliases).any(|known| same(known, name, *ignore_case))
                };
                let found = parameters.iter().find(|(name, _)| is_key(name));
                let holds = test.holds(found.map(|(_, value)| value), *ignore_case);
                let is_open = *by_attributes_class && claim.has_attributes_class;
                (!is_open).then_some(holds)
            }
            When::DataSource => claim.has_data_source,
            When::ClaimAsks(_) => None,
            When::Setup(_) => return ConditionState::Hidden,
        };
        match met {
            Some(true) => ConditionState::Met,
            Some(false) => ConditionState::NotMet,
            None => ConditionState::UpToClaim,
        }
    }
}

const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];

impl Test {
    fn holds(&self, value: Option<&str>, ignore_case: bool) -> bool {
        let Some(value) = value else {
            return *self == Self::Present(false);
        };
        let is_one_of =
            |values: &[Text], word| values.iter().any(|each| same(each, word, ignore_case));
        match self {
            Self::Is(values) => is_one_of(values, value),
            Self::Lacks(words) => !value.split_whitespace().any(|word| is_one_of(words, word)),
            Self::Prefix(text) => {
                value.get(..text.len()).is_some_and(|head| same(text, head, ignore_case))
            }
            Self::Suffix(text) => value
                .get(value.len().saturating_sub(text.len())..)
                .is_some_and(|tail| same(text, tail, ignore_case)),
            Self::AtLeast(least) => value.trim().parse().is_ok_and(|number: u64| number >= *least),
            Self::Bool(true) => TRUE.contains(&value),
            Self::Bool(false) => FALSE.contains(&value),
            Self::Present(is_expected) => *is_expected,
        }
    }
}

fn same(a: &str, b: &str, ignore_case: bool) -> bool {
    if ignore_case { a.eq_ignore_ascii_case(b) } else { a == b }
}

/// A clause that goes after "possible only when".
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { key, test, .. } => write!(f, "StorageClass parameter {key:?} {test}"),
            Self::DataSource => {
                f.write_str("the claim names a snapshot or another claim as its data source")
            }
            Self::ClaimAsks(mode) => write!(f, "the claim asks for {mode}"),
            Self::Setup(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, values) = match self {
            Self::Is(values) => ("is", values),
            Self::Lacks(words) => ("does not list", words),
            Self::Prefix(text) => return write!(f, "starts with {text:?}"),
            Self::Suffix(text) => return write!(f, "ends with {text:?}"),
            Self::AtLeast(number) => return write!(f, "is {number} or more"),
            Self::Bool(value) => return write!(f, "is \"{value}\""),
            Self::Present(true) => return f.write_str("is set"),
            Self::Present(false) => return f.write_str("is left out"),
        };
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        write!(f, "{verb} {}", listed(&values, "or"))
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawWhen {
    parameter: Option<Text>,
    aliases: Vec<Text>,
    is: Option<Vec<Text>>,
    prefix: Option<Text>,
    suffix: Option<Text>,
    at_least: Option<u64>,
    lacks: Option<Vec<Text>>,
    bool: Option<bool>,
    present: Option<bool>,
    ignore_case: bool,
    by_attributes_class: bool,
    claim_has: Option<ClaimPart>,
    claim_asks: Option<Text>,
    setup: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClaimPart {
    DataSource,
}

impl TryFrom<RawWhen> for When {
    type Error = String;

    fn try_from(raw: RawWhen) -> Result<Self, String> {
        let mut tests = [
            raw.is.map(Test::Is),
            raw.prefix.map(Test::Prefix),
            raw.suffix.map(Test::Suffix),
            raw.at_least.map(Test::AtLeast),
            raw.lacks.map(Test::Lacks),
            raw.bool.map(Test::Bool),
            raw.present.map(Test::Present),
        ]
        .into_iter()
        .flatten();
        let says_how = !raw.aliases.is_empty() || raw.ignore_case || raw.by_attributes_class;
        let parameter = match (raw.parameter, tests.next(), tests.next()) {
            (Some(key), Some(test), None) => Some(Self::Parameter {
                key,
                aliases: raw.aliases,
                test,
                ignore_case: raw.ignore_case,
                by_attributes_class: raw.by_attributes_class,
            }),
            (None, None, _) if !says_how => None,
            _ => return Err(EXACTLY_ONE.to_owned()),
        };
        let mode = raw.claim_asks.map(|name| modes::exact_mode(&name));
        let mut subjects = [
            parameter,
            raw.claim_has.map(|ClaimPart::DataSource| Self::DataSource),
            mode.transpose()?.map(Self::ClaimAsks),
            raw.setup.map(Self::Setup),
        ]
        .into_iter()
        .flatten();
        match (subjects.next(), subjects.next()) {
            (Some(subject), None) => Ok(subject),
            _ => Err(EXACTLY_ONE.to_owned()),
        }
    }
}

const EXACTLY_ONE: &str = "`when` takes exactly one of `parameter`, `claim_has`, `claim_asks` and \
    `setup`, and `parameter` goes with exactly one of `is`, `prefix`, `suffix`, `at_least`, \
    `lacks`, `bool` and `present`";

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(when: &str) -> Result<Condition, serde_saphyr::Error> {
        serde_saphyr::from_str(&format!("when: {when}\n"))
    }

    #[test]
    fn a_data_source_is_the_claims_affair() {
        let condition = condition("{claim_has: data-source}").unwrap();
        for (has_data_source, expected) in
            [(true, ConditionState::Met), (false, ConditionState::NotMet)]
        {
            let claim = Claimant { has_data_source: Some(has_data_source), ..Claimant::default() };
            assert_eq!(condition.state(&Labels::default(), claim), expected);
        }
    }

    #[test]
    fn what_an_attributes_class_may_set_is_up_to_the_claim_that_names_one() {
        let settable = "{parameter: type, is: [io2], by_attributes_class: true}";
        let cases = [
            (settable, false, ConditionState::Met),
            (settable, true, ConditionState::UpToClaim),
            ("{parameter: type, is: [io2]}", true, ConditionState::Met),
        ];
        for (when, has_attributes_class, expected) in cases {
            let claim = Claimant { has_data_source: Some(false), has_attributes_class };
            let state =
                condition(when).unwrap().state(&Labels::from_iter([("type", "io2")]), claim);
            assert_eq!(state, expected, "{when} {has_attributes_class}");
        }
    }
}
