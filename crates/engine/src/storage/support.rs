//! Whether a class can give the access modes that a claim requests.

use super::capability::Capability;
use super::condition::{Condition, ConditionState, When};
use super::entry::Rwop;
use crate::model::access_mode::{AccessMode, AccessModes};

/// Whether a class can give the requested access modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// It gives all of them.
    Supported,
    /// It could, but not with the parameters and the claim at hand.
    NotAsConfigured {
        /// The modes not given.
        modes: AccessModes,
        /// The condition: a clause such as
        /// `possible only when StorageClass parameter "type" is "io2"`.
        hint: String,
    },
    /// It never can.
    Refused {
        /// The modes no condition grants.
        modes: AccessModes,
    },
    /// Nothing shows that it can, and nothing verified says that it cannot.
    Unproven {
        /// The modes not shown to be given.
        modes: AccessModes,
        /// The reason for the doubt, as a clause.
        hint: String,
    },
    /// The catalog knows nothing about this class for this volume mode.
    Unknown,
}

impl Capability<'_> {
    /// Whether the class can give every mode in `requested`.
    ///
    /// Each mode is judged separately, as the external-provisioner validates each separately.
    pub(crate) fn judge(&self, requested: AccessModes) -> Support {
        // Modes that a provisioner turns on because the claim requests them.
        let on_request = self.granted_by(|condition, _| {
            matches!(condition.when, When::ClaimAsks(mode) if requested.contains(mode))
        });
        let granted = self.granted.map(|granted| granted.union(on_request));
        if requested.is_subset(granted.unwrap_or_default()) {
            return Support::Supported;
        }
        let (Some(granted), Some(possible)) = (granted, self.possible) else {
            return Support::Unknown;
        };
        let mut missing = requested.minus(granted);
        // A list without ReadWriteOncePod proves nothing, unless it is the empty
        // list of a volume mode that is refused altogether.
        let pod = AccessModes::of(&[AccessMode::ReadWriteOncePod]);
        if pod.is_subset(missing) && !possible.is_empty() && !pod.is_subset(possible) {
            match self.rwop {
                Rwop::Refused => {}
                Rwop::UnsupportedByVendor if missing == pod => {
                    return Support::Unproven {
                        modes: pod,
                        hint: "the vendor does not support it".to_owned(),
                    };
                }
                _ => missing = missing.minus(pod),
            }
        }
        if missing.is_empty() {
            return Support::Supported;
        }
        self.shortfall(missing, missing.minus(possible))
    }

    /// The answer for `missing` modes. No condition grants those that are `outside`.
    fn shortfall(&self, missing: AccessModes, outside: AccessModes) -> Support {
        let unproven = |hint| Support::Unproven { modes: missing, hint };
        let hint = self.hint(missing);
        if !self.confidence.is_firm() {
            let confidence = self.confidence.text();
            return unproven(
                hint.map_or_else(|| confidence.to_owned(), |hint| format!("{hint} ({confidence})")),
            );
        }
        let Some(hint) = hint.filter(|_| outside.is_empty()) else {
            return Support::Refused { modes: outside };
        };
        // A condition that no object shows may hold; the others are known not to hold.
        let unseen = self.granted_by(|_, state| {
            matches!(state, ConditionState::Hidden | ConditionState::UpToClaim)
        });
        let visible = missing.minus(unseen);
        if visible.is_empty() {
            return unproven(hint);
        }
        Support::NotAsConfigured { hint: self.hint(visible).unwrap_or(hint), modes: visible }
    }

    /// The modes granted by the conditions that `counts` chooses. If a condition that holds sets
    /// the modes, nothing adds to them.
    fn granted_by(&self, counts: impl Fn(&Condition, ConditionState) -> bool) -> AccessModes {
        let effect = |condition: &Condition| condition.effect(self.volume_mode);
        let is_set = self.conditions.iter().any(|(condition, state)| {
            *state == ConditionState::Met && effect(condition).set.is_some()
        });
        self.conditions
            .iter()
            .filter(|(condition, state)| counts(condition, *state))
            .map(|(condition, _)| match effect(condition) {
                effect if is_set => effect.set.unwrap_or_default(),
                effect => effect.grants(),
            })
            .fold(AccessModes::EMPTY, AccessModes::union)
    }

    /// The conditions that keep the class from these modes, as a clause; `None` if no condition
    /// concerns them.
    pub(super) fn hint(&self, missing: AccessModes) -> Option<String> {
        let concerns = |(condition, state): &&(&Condition, ConditionState)| {
            let effect = condition.effect(self.volume_mode);
            if *state == ConditionState::Met {
                effect.set.is_some_and(|set| !missing.is_subset(set))
            } else {
                !effect.grants().common(missing).is_empty()
            }
        };
        let (ruled_out, needed): (Vec<_>, Vec<_>) = self
            .conditions
            .iter()
            .filter(concerns)
            .partition(|(_, state)| *state == ConditionState::Met);
        if !ruled_out.is_empty() {
            return Some(format!("ruled out while {}", joined(&ruled_out)));
        }
        if needed.is_empty() {
            return None;
        }
        let mut hint = format!("possible only when {}", joined(&needed));
        if needed.iter().all(|(_, state)| *state == ConditionState::Hidden) {
            hint.push_str(", which no object of the cluster shows");
        }
        Some(hint)
    }
}

fn joined(conditions: &[&(&Condition, ConditionState)]) -> String {
    conditions
        .iter()
        .map(|(condition, state)| {
            let clause = &condition.when;
            match (clause, state) {
                (When::Parameter { .. }, ConditionState::UpToClaim) => {
                    format!("{clause} or the claim's VolumeAttributesClass makes it so")
                }
                _ => clause.to_string(),
            }
        })
        .collect::<Vec<_>>()
        .join(", or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access_mode::VolumeMode;
    use crate::model::claim::{Claim, ClaimSpec};
    use crate::model::labels::Labels;
    use crate::storage::condition::Claimant;
    use crate::storage::{Catalog, ClassModes, ProvisionerOverride};
    use AccessMode::{ReadOnlyMany, ReadWriteMany, ReadWriteOnce};
    use VolumeMode::{Block, Filesystem};

    fn capability(
        provisioner: &str,
        parameters: &[(&str, &str)],
        mode: VolumeMode,
    ) -> Capability<'static> {
        let claim = Claimant { has_data_source: Some(false), ..Claimant::default() };
        let catalog = Catalog::embedded().unwrap();
        let parameters = parameters.iter().copied().collect();
        catalog.capability_for(provisioner, &parameters, mode, claim)
    }

    #[test]
    fn only_what_stands_in_the_way_is_named() {
        let asked = AccessModes::of(&[ReadWriteOnce, ReadOnlyMany, ReadWriteMany]);
        assert_eq!(
            capability("ebs.csi.aws.com", &[("type", "io2")], Block).judge(asked),
            Support::Refused { modes: AccessModes::of(&[ReadOnlyMany]) }
        );
        // One mode is never given, the other with a parameter: the worse answer counts.
        assert_eq!(
            capability("ebs.csi.aws.com", &[], Block).judge(asked),
            Support::Refused { modes: AccessModes::of(&[ReadOnlyMany]) }
        );
        assert_eq!(
            capability("ebs.csi.aws.com", &[], Block).judge(AccessModes::EMPTY),
            Support::Supported
        );
    }

    #[test]
    fn what_a_volume_attributes_class_may_set_stays_open() {
        let judge = |attributes_class: &str, parameters: &[(&str, &str)]| {
            let claim = Claim {
                spec: ClaimSpec {
                    volume_mode: Block,
                    volume_attributes_class_name: attributes_class.into(),
                    ..ClaimSpec::default()
                },
                ..Claim::default()
            };
            let parameters = parameters.iter().copied().collect();
            Catalog::embedded()
                .unwrap()
                .capability_of_claim("ebs.csi.aws.com", &parameters, &claim)
                .judge(AccessModes::of(&[ReadWriteMany]))
        };
        let rwx = AccessModes::of(&[ReadWriteMany]);
        assert_eq!(judge("", &[("type", "io2")]), Support::Supported);
        assert!(matches!(judge("", &[]), Support::NotAsConfigured { .. }));
        let open = Support::Unproven {
            modes: rwx,
            hint: "possible only when StorageClass parameter \"type\" is \"io2\" or the claim's \
                   VolumeAttributesClass makes it so"
                .to_owned(),
        };
        assert_eq!(judge("fast", &[]), open);
        assert_eq!(judge("fast", &[("type", "io2")]), open);
    }

    #[test]
    fn what_is_stated_binds_in_both_directions() {
        let stated =
            ClassModes { filesystem: Some(AccessModes::of(&[ReadWriteMany])), block: None };
        let local = capability("rancher.io/local-path", &[], Filesystem).with_stated(stated);
        assert_eq!(local.judge(AccessModes::of(&[ReadWriteMany])), Support::Supported);
        assert_eq!(
            local.judge(AccessModes::of(&[ReadWriteOnce])),
            Support::Refused { modes: AccessModes::of(&[ReadWriteOnce]) }
        );
        let unknown = capability("unheard.example.com", &[], Filesystem);
        let rwx = AccessModes::of(&[ReadWriteMany]);
        assert_eq!(unknown.judge(rwx), Support::Unknown);
        assert_eq!(unknown.with_stated(stated).judge(rwx), Support::Supported);
    }

    #[test]
    fn a_policys_word_on_an_in_tree_name_leaves_the_successor_out() {
        let catalog = Catalog::embedded().unwrap().with_overrides(vec![ProvisionerOverride {
            name: "kubernetes.io/aws-ebs".into(),
            block: Some(AccessModes::of(&[ReadWriteOnce])),
            ..ProvisionerOverride::default()
        }]);
        let judge = |mode| {
            catalog
                .capability("kubernetes.io/aws-ebs", &Labels::default(), mode)
                .judge(AccessModes::of(&[ReadWriteMany]))
        };
        let refused = Support::Refused { modes: AccessModes::of(&[ReadWriteMany]) };
        assert_eq!(judge(Block), refused);
        assert_eq!(judge(Filesystem), refused);
    }
}
