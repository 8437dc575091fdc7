//! The catalog: every known provisioner, found by name.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::entry::Entry;
use super::glob::Glob;
use crate::model::Text;

pub(super) const EMBEDDED: &str = include_str!("catalog.yaml");

/// The error of a catalog that cannot be read, with line and column.
#[derive(Debug, thiserror::Error)]
#[error("the storage catalog cannot be read: {0}")]
pub struct CatalogError(#[from] serde_saphyr::Error);

/// Every provisioner that is known, by name or by pattern.
#[derive(Clone, Debug)]
pub struct Catalog {
    exact: hashbrown::HashMap<Text, Entry>,
    /// The longest fixed part comes first; among equals, the one that was added later.
    globs: Vec<(Glob, Entry)>,
}

/// The catalog's file; `T` is the part of each entry that is read.
#[derive(Deserialize)]
pub(super) struct CatalogFile<T> {
    pub(super) provisioners: HashMap<Text, T>,
}

impl Catalog {
    /// The catalog that is part of this program, read once.
    ///
    /// # Errors
    /// The embedded file cannot be read, which a test rules out.
    // Inline for the same reason that `Policy::parse` is generic.
    #[inline]
    pub fn embedded() -> Result<&'static Self, &'static CatalogError> {
        static CATALOG: OnceLock<Result<Catalog, CatalogError>> = OnceLock::new();
        CATALOG.get_or_init(|| Self::from_yaml(EMBEDDED)).as_ref()
    }

    /// Reads a catalog in the form of `catalog.yaml`.
    ///
    /// # Errors
    /// The text is not YAML, has an unknown word, or names a provisioner twice.
    #[inline]
    fn from_yaml(text: &str) -> Result<Self, CatalogError> {
        let file: CatalogFile<Entry> = serde_saphyr::from_str(text)?;
        let mut catalog = Self {
            exact: hashbrown::HashMap::with_capacity(file.provisioners.len()),
            globs: Vec::new(),
        };
        for (name, mut entry) in file.provisioners {
            entry.name = name;
            catalog.put(entry);
        }
        Ok(catalog)
    }

    /// The entry of a provisioner: the exact name, else the pattern with the
    /// longest fixed part. Allocates nothing.
    pub fn get(&self, provisioner: &str) -> Option<&Entry> {
        self.find(provisioner, |glob| glob.matches(provisioner))
    }

    /// The entry with this exact name, or else the first one whose pattern `is_meant`.
    fn find(&self, name: &str, is_meant: impl Fn(&Glob) -> bool) -> Option<&Entry> {
        let mut globs = self.globs.iter();
        let by_glob = || globs.find_map(|(glob, entry)| is_meant(glob).then_some(entry));
        self.exact.get(name).or_else(by_glob)
    }

    /// Every entry, for corrections; names must stay as they are.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.exact.values_mut().chain(self.globs.iter_mut().map(|(_, entry)| entry))
    }

    /// Adds an entry, or replaces the one with the same name.
    pub(super) fn put(&mut self, entry: Entry) {
        let Some(glob) = Glob::new(&entry.name) else {
            self.exact.insert(entry.name.clone(), entry);
            return;
        };
        self.globs.retain(|(other, _)| *other != glob);
        let at = self.globs.partition_point(|(other, _)| other.fixed_len() > glob.fixed_len());
        self.globs.insert(at, (glob, entry));
    }

    /// The entry with exactly this name or pattern.
    pub(super) fn named(&self, name: &str) -> Option<&Entry> {
        self.find(name, |glob| glob.pattern() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_found(name: &str) -> Option<&'static str> {
        Catalog::embedded().unwrap().get(name).map(|entry| entry.name.as_str())
    }

    #[test]
    fn names_are_found_exactly_then_by_the_longest_pattern() {
        let cases = [
            ("ebs.csi.aws.com", Some("ebs.csi.aws.com")),
            ("rook-ceph.rbd.csi.ceph.com", Some("*.rbd.csi.ceph.com")),
            ("rbd.csi.ceph.com", Some("rbd.csi.ceph.com")),
            ("nfs.manila.csi.openstack.org", Some("*.manila.csi.openstack.org")),
            ("manila.csi.openstack.org", Some("manila.csi.openstack.org")),
            ("org.democratic-csi.nfs", Some("org.democratic-csi.nfs")),
            ("org.democratic-csi.truenas", Some("org.democratic-csi.*")),
            (
                "cluster.local/prod-nfs-subdir-external-provisioner",
                Some("*nfs-subdir-external-provisioner"),
            ),
            ("EBS.csi.aws.com", None),
            ("example.com/unheard-of", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(name_found(name), expected, "{name}");
        }
    }

    #[test]
    fn of_two_patterns_the_longer_one_wins_wherever_it_stands() {
        let entry = "{title: t, confidence: believed}";
        for (first, second) in [("a*", "ab*"), ("ab*", "a*")] {
            let text = format!("provisioners:\n  \"{first}\": {entry}\n  \"{second}\": {entry}\n");
            let catalog = Catalog::from_yaml(&text).unwrap();
            assert_eq!(catalog.get("abc").unwrap().name, "ab*");
            assert_eq!(catalog.get("ac").unwrap().name, "a*");
        }
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_with_the_place() {
        let entry = "{title: t, confidence: believed}";
        let cases = [
            ("a key that is missing", "provisioners:\n  a: {colour: blue}\n".to_owned(), "line 2"),
            (
                "a mode that is none",
                format!("provisioners:\n  a: {}\n", entry.replace('}', ", block: [RWQ]}")),
                "RWQ",
            ),
            ("a name twice", format!("provisioners:\n  a: {entry}\n  a: {entry}\n"), "duplicate"),
        ];
        for (case, text, expected) in cases {
            let error = Catalog::from_yaml(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{case}: {error}");
        }
    }
}
