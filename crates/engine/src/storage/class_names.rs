//! Conclusions from the name of a StorageClass if the class itself is not in view.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::Text;
use crate::model::storage_class::StorageClass;

const EMBEDDED: &str = include_str!("class_names.yaml");

/// A group as `class_names.yaml` writes it; the file's header explains the keys. The sources of the
/// classes are for readers and are not kept.
#[derive(Deserialize)]
struct Group {
    /// The class, without its name.
    #[serde(flatten)]
    class: StorageClass,
    #[serde(default)]
    classes: Vec<Text>,
    #[serde(default)]
    common: Vec<Text>,
    #[serde(default)]
    words: Vec<Text>,
}

/// The meanings of names: of whole ones, and of the words in any other.
#[derive(Default)]
struct Names {
    /// The classes of all names, also of the common ones, in the order of the file.
    all: Vec<StorageClass>,
    whole: HashMap<Text, Vec<StorageClass>>,
    words: HashMap<Text, Vec<StorageClass>>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| read(EMBEDDED).unwrap_or_default());

/// The classes that installations create under `name`, one for each meaning of the name; none if
/// the name means nothing.
pub fn likely_classes(name: &str) -> &'static [StorageClass] {
    let whole = |key: &str| NAMES.whole.get(key).map(Vec::as_slice);
    let is_extended = || format!("-{name}-").contains(&format!("-{EXTENDED}-"));
    let by_part = || whole(EXTENDED).filter(|_| is_extended());
    whole(name).or_else(by_part).unwrap_or_default()
}

/// Every class that installations create, in the order of the file: for readers who know what their
/// own cluster is, also under names from which nothing can be concluded.
pub fn known_classes() -> &'static [StorageClass] {
    &NAMES.all
}

/// A name to which installations add words of their own: `local-path-keep`, `retain-local-path`.
const EXTENDED: &str = "local-path";

/// The classes that `name` means or, if it means nothing by itself, those that its first word with
/// a meaning does (`team-nfs-data`).
pub(crate) fn supposed_classes(name: &str) -> &'static [StorageClass] {
    let by_word = || {
        name.split(|c: char| !c.is_ascii_alphanumeric())
            .find_map(|word| NAMES.words.get(word.to_ascii_lowercase().as_str()))
            .map_or(&[][..], Vec::as_slice)
    };
    match likely_classes(name) {
        [] => by_word(),
        classes => classes,
    }
}

/// Reads the names. A test rules out that the embedded file cannot be read.
fn read(text: &str) -> Result<Names, serde_saphyr::Error> {
    #[derive(Deserialize)]
    struct File {
        groups: Vec<Group>,
    }
    let file: File = serde_saphyr::from_str(text)?;
    let mut names = Names::default();
    for group in file.groups {
        let class = |name: &Text| {
            let mut class = group.class.clone();
            class.metadata.name = name.clone();
            class
        };
        names.all.extend(group.classes.iter().chain(&group.common).map(class));
        for (table, keys) in [(&mut names.whole, &group.classes), (&mut names.words, &group.words)]
        {
            for name in keys {
                table.entry(name.clone()).or_default().push(class(name));
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Catalog;

    #[test]
    fn every_class_is_of_a_provisioner_that_the_catalog_knows() {
        let catalog = Catalog::embedded().unwrap();
        let Names { all, whole, words } = read(EMBEDDED).unwrap();
        for class in words.values().flatten().chain(&all) {
            let known = catalog.get(class.driver()).is_some();
            assert!(known, "{}: {}", class.metadata.name, class.driver());
        }
        assert!(whole.len() >= 60, "{}", whole.len());
    }

    #[test]
    fn every_group_says_where_its_classes_were_found() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Row {
            provisioner: String,
            #[serde(default)]
            classes: Vec<String>,
            #[serde(default)]
            common: Vec<String>,
            #[serde(default)]
            words: Vec<String>,
            #[serde(default)]
            parameters: HashMap<String, String>,
            source: String,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            gathered: String,
            groups: Vec<Row>,
        }
        let file: File = serde_saphyr::from_str(EMBEDDED).unwrap();
        assert_eq!(file.gathered, "2026-11-21");
        for row in &file.groups {
            assert!(row.source.contains([':', ',']), "{}", row.source);
            assert!(row.classes.len() + row.common.len() > 0, "{}", row.provisioner);
            let empty = row.parameters.values().any(String::is_empty);
            assert!(!empty, "{}", row.provisioner);
            let lower = row.words.iter().all(|word| *word == word.to_ascii_lowercase());
            assert!(lower, "{:?}", row.words);
        }
    }

    #[test]
    fn names_that_mean_many_things_mean_nothing_here() {
        for name in ["standard", "default", "fast", "nfs", "local-storage", ""] {
            assert!(likely_classes(name).is_empty(), "{name}");
        }
        let provisioners: Vec<_> =
            likely_classes("standard-rwo").iter().map(|class| class.provisioner.as_str()).collect();
        assert_eq!(provisioners, ["pd.csi.storage.gke.io", "disk.csi.azure.com"]);
        assert_eq!(likely_classes("gp3")[0].parameters.get("type"), Some("gp3"));
    }

    #[test]
    fn nfs_as_a_word_of_a_name_means_every_driver_of_nfs() {
        let drivers = |name| -> Vec<&str> {
            let classes = supposed_classes(name);
            classes.iter().map(StorageClass::driver).collect()
        };
        let nfs = ["org.democratic-csi.nfs", "csi-powerstore.dellemc.com", "nfs.csi.k8s.io"];
        for name in ["nfs", "team-nfs-data", "NFS.slow"] {
            let mut found = drivers(name);
            found.sort_by_key(|driver| nfs.iter().position(|each| each == driver));
            assert_eq!(found, nfs, "{name}");
        }
        for name in ["infsight", "standard", "nonlocal-path", ""] {
            assert!(drivers(name).is_empty(), "{name}");
        }
        let named = [
            ("powerstore-nfs", "csi-powerstore.dellemc.com"),
            ("freenas-nfs-csi", "org.democratic-csi.nfs"),
            ("nfs-csi", "nfs.csi.k8s.io"),
            ("csi-disk", "disk.csi.everest.io"),
            ("local-path-keep", "rancher.io/local-path"),
            ("retain-local-path", "rancher.io/local-path"),
        ];
        for (name, driver) in named {
            assert_eq!(drivers(name), [driver], "{name}");
        }
    }
}
