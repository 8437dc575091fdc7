//! The catalog for readers: every provisioner in the order of the file, with its part of the
//! catalog, the requirements for sharing and the sources of the facts. No judgement reads this.

use serde::{Deserialize, Serialize};

use super::catalog::{CatalogError, CatalogFile, EMBEDDED};
use crate::model::Text;

/// A provisioner of the catalog, as readers look it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name, or a pattern with `*`.
    #[serde(skip)]
    pub name: Text,
    /// The part of the catalog: a cloud, or a kind of storage.
    #[serde(skip_deserializing)]
    pub part: Text,
    /// The requirements for sharing a volume, besides the access mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Text>,
    /// The sources of the facts.
    #[serde(default)]
    pub sources: Vec<Text>,
    #[serde(skip_serializing)]
    kind: Text,
}

impl Listed {
    /// Whether current clusters create volumes with it.
    pub fn is_current(&self) -> bool {
        !self.part.starts_with("In-tree")
            && !self.part.starts_with("Retired")
            && self.kind != "in-tree"
    }
}

/// Every provisioner of the embedded catalog.
///
/// # Errors
/// The embedded file cannot be read, which a test rules out.
// Inline for the same reason that `Policy::parse` is generic.
#[inline]
pub fn listing() -> Result<Vec<Listed>, CatalogError> {
    let mut file: CatalogFile<Listed> = serde_saphyr::from_str(EMBEDDED)?;
    let mut listed = Vec::with_capacity(file.provisioners.len());
    let mut part = "";
    for line in EMBEDDED.lines() {
        if let Some(title) = line.strip_prefix("  # ") {
            part = title;
        }
        let key = line.strip_prefix("  ").and_then(|indented| indented.strip_suffix(':'));
        let name = key.unwrap_or_default().trim_matches('"');
        if let Some((name, mut entry)) = file.provisioners.remove_entry(name) {
            entry.name = name;
            entry.part = part.into();
            listed.push(entry);
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Catalog;

    #[test]
    fn every_entry_is_listed_under_a_part() {
        let listed = listing().unwrap();
        let entries = EMBEDDED.matches("\n    title: ").count();
        assert_eq!(listed.len(), entries);
        for entry in &listed {
            assert!(!entry.part.is_empty() && !entry.sources.is_empty(), "{}", entry.name);
            assert!(Catalog::embedded().unwrap().get(&entry.name).is_some(), "{}", entry.name);
        }
        let first = &listed[0];
        assert_eq!(
            (first.name.as_str(), first.part.as_str(), first.is_current()),
            ("ebs.csi.aws.com", "Amazon Web Services", true)
        );
    }
}
