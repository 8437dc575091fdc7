//! The text that `capabilities` prints about a StorageClass.

use serde::Serialize;

use super::attach::Attach;
use super::capability::{Capability, NodeLocal};
use super::catalog::Catalog;
use super::condition::ConditionState;
use super::modes::ClassModes;
use crate::model::Text;
use crate::model::access_mode::{AccessModes, VolumeMode};
use crate::model::storage_class::StorageClass;
use crate::snapshot::View;

/// The capabilities of one StorageClass, in words that are ready for the layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassSummary {
    /// The class's name; empty for a product without a class.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub class: Text,
    /// Its provisioner.
    pub provisioner: Text,
    /// The usual name of the product; `None` if the provisioner is in no catalog.
    pub title: Option<Text>,
    /// Access modes for file systems.
    pub filesystem: ModeSummary,
    /// Access modes for raw block devices.
    pub block: ModeSummary,
    /// Whether volumes are attached, and the source that says so.
    pub attach: &'static str,
    /// Whether the data lives on one node.
    pub node_local: &'static str,
    /// Sentences for the user.
    pub notes: Vec<Text>,
}

/// The access modes of a class for one volume mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeSummary {
    /// The modes that the class gives as it is; `None` if unknown, empty if it makes no volumes of
    /// this mode.
    pub modes: Option<AccessModes>,
    /// The modes that it could give, and their conditions.
    pub conditional: Vec<ConditionalModes>,
    /// The confidence; `None` if nothing is known.
    pub confidence: Option<&'static str>,
}

/// Modes that a class gives only on a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalModes {
    /// The modes.
    pub modes: AccessModes,
    /// The condition: a clause such as `possible only when StorageClass parameter "type" is "io2"`.
    pub condition: String,
}

impl ClassSummary {
    /// Summarizes a class in its cluster, with the access modes that its annotations state.
    pub fn in_view(catalog: &Catalog, class: &StorageClass, view: View<'_>) -> Self {
        let stated = ClassModes::from_annotations(&class.metadata.annotations);
        let unreadable = stated.as_ref().err().map(|error| format!("{error}."));
        let attach = catalog.attach(class.driver(), |driver| view.csi_driver(driver));
        let mut summary = Self::new(catalog, class, stated.unwrap_or_default(), attach);
        summary.notes.extend(unreadable.map(Into::into));
        summary
    }

    /// The class, its provisioner and the product.
    pub fn heading(&self) -> String {
        let known = self.title.as_deref().unwrap_or("in no catalog");
        let storage = format!("{}, {known}", self.provisioner);
        if self.class.is_empty() { storage } else { format!("{} ({storage})", self.class) }
    }

    /// Summarizes a class: `stated` has the modes in its annotations, `attach` says whether its
    /// volumes are attached.
    pub fn new(
        catalog: &Catalog,
        class: &StorageClass,
        stated: ClassModes,
        attach: Attach,
    ) -> Self {
        let capability =
            |mode| catalog.capability(class.driver(), &class.parameters, mode).with_stated(stated);
        let filesystem = capability(VolumeMode::Filesystem);
        let block = capability(VolumeMode::Block);
        let entry = catalog.get(class.driver());
        let mut notes = Vec::from_iter(entry.and_then(|entry| entry.note.clone()));
        for (condition, state) in filesystem.conditions.iter().chain(&block.conditions) {
            if let (ConditionState::Met, Some(note)) = (state, &condition.note)
                && !notes.contains(note)
            {
                notes.push(note.clone());
            }
        }
        if let Attach::NotRequired { .. } = attach
            && let Some(second) = catalog.second_use(class.driver(), Some(&class.parameters))
        {
            notes.insert(0, second.text().into());
        }
        Self {
            class: class.metadata.name.clone(),
            provisioner: class.provisioner.clone(),
            title: entry.map(|entry| entry.title.clone()),
            attach: attach.text(),
            node_local: catalog.node_local(class.driver(), &class.parameters).text(),
            filesystem: ModeSummary::of(&filesystem),
            block: ModeSummary::of(&block),
            notes,
        }
    }
}

impl ModeSummary {
    /// The modes that the class gives as it is.
    pub fn granted(&self) -> String {
        self.modes.as_ref().map_or_else(|| "unknown".to_owned(), AccessModes::to_string)
    }

    fn of(capability: &Capability<'_>) -> Self {
        let mut conditional: Vec<ConditionalModes> = Vec::new();
        let granted = capability.granted.unwrap_or_default();
        let open = capability.possible.unwrap_or_default().minus(granted);
        for mode in open.iter() {
            let modes = AccessModes::of(&[mode]);
            let Some(condition) = capability.hint(modes) else {
                continue;
            };
            match conditional.iter_mut().find(|each| each.condition == condition) {
                Some(each) => each.modes.insert(mode),
                None => conditional.push(ConditionalModes { modes, condition }),
            }
        }
        Self {
            modes: capability.granted,
            conditional,
            confidence: capability.granted.map(|_| capability.confidence.text()),
        }
    }
}

impl NodeLocal {
    /// The answer in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Pinned => "yes, and its volumes keep pods on their node",
            Self::Scheduled => "yes, and the driver's own scheduler keeps pods on their node",
            Self::Unpinned => "yes, but nothing keeps pods on the node",
            Self::Unknown => "yes; whether its volumes keep pods on their node is not known",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access_mode::AccessMode::{
        ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod,
    };
    use crate::model::metadata::Metadata;
    use crate::snapshot::Lookup;

    fn summary(provisioner: &str, parameters: &[(&str, &str)], stated: ClassModes) -> ClassSummary {
        let catalog = Catalog::embedded().unwrap();
        let class = StorageClass {
            metadata: Metadata { name: "fast".into(), ..Metadata::default() },
            provisioner: provisioner.into(),
            parameters: parameters.iter().copied().collect(),
            ..StorageClass::default()
        };
        let attach = catalog.attach(class.driver(), |_| Lookup::Absent);
        ClassSummary::new(catalog, &class, stated, attach)
    }

    #[test]
    fn a_class_is_summed_up_with_its_conditions() {
        let azure =
            summary("disk.csi.azure.com", &[("skuname", "Premium_ZRS")], ClassModes::default());
        let own = AccessModes::of(&[ReadWriteOnce, ReadWriteOncePod]);
        let verified = Some("verified in the driver's code or official documentation");
        assert_eq!(
            azure,
            ClassSummary {
                class: "fast".into(),
                provisioner: "disk.csi.azure.com".into(),
                title: Some("Azure Disk (CSI)".into()),
                filesystem: ModeSummary {
                    modes: Some(own),
                    conditional: vec![],
                    confidence: verified,
                },
                block: ModeSummary {
                    modes: Some(own),
                    conditional: vec![ConditionalModes {
                        modes: AccessModes::of(&[ReadOnlyMany, ReadWriteMany]),
                        condition:
                            "possible only when StorageClass parameter \"maxShares\" is 2 or more"
                                .to_owned(),
                    }],
                    confidence: verified,
                },
                attach: "attached (catalog)",
                node_local: "no",
                notes: vec!["The disk can follow its pod through the whole region.".into()],
            }
        );
    }

    #[test]
    fn an_unknown_class_and_a_stated_one() {
        let unknown = summary("unheard.example.com", &[], ClassModes::default());
        assert_eq!(unknown.title, None);
        assert_eq!(unknown.filesystem.modes, None);
        assert_eq!(unknown.filesystem.confidence, None);
        assert_eq!(unknown.attach, "attached (assumed)");

        let stated = summary(
            "rancher.io/local-path",
            &[],
            ClassModes { filesystem: Some(AccessModes::of(&[ReadWriteMany])), block: None },
        );
        assert_eq!(stated.filesystem.modes, Some(AccessModes::of(&[ReadWriteMany])));
        assert_eq!(stated.filesystem.confidence, Some("stated by the policy or the StorageClass"));
        assert_eq!(stated.block.modes, Some(AccessModes::EMPTY));
        assert_eq!(stated.node_local, "yes, and its volumes keep pods on their node");
    }

    #[test]
    fn a_summary_reads_as_json() {
        let json =
            serde_json::to_value(summary("efs.csi.aws.com", &[], ClassModes::default())).unwrap();
        assert_eq!(json["nodeLocal"], "no");
        assert_eq!(json["block"]["modes"], serde_json::json!([]));
        assert_eq!(
            json["filesystem"]["modes"],
            serde_json::json!(["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"])
        );
    }
}
