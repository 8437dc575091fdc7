//! What the names of StorageClasses mean that nobody defines where one looks.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::Text;
use crate::model::metadata::Metadata;
use crate::model::storage_class::StorageClass;

const EMBEDDED: &str = include_str!("class_names.yaml");

/// A group as `class_names.yaml` writes it; the file's header explains the
/// keys. Where the classes were found is for readers and is not kept.
#[derive(Deserialize)]
struct Group {
    provisioner: Text,
    classes: Vec<Text>,
    #[serde(default)]
    parameters: HashMap<Text, Text>,
}

/// The classes that installations create under `name`, as these make them: one
/// for each meaning of the name; none where the name means nothing.
#[must_use]
pub fn likely_classes(name: &str) -> &'static [StorageClass] {
    static CLASSES: LazyLock<HashMap<Text, Vec<StorageClass>>> =
        LazyLock::new(|| read(EMBEDDED).unwrap_or_default());
    CLASSES.get(name).map_or(&[], Vec::as_slice)
}

/// The classes that `name` means, or, where it means nothing by itself and NFS is a word of
/// it (`team-nfs-data`), one of NFS: whoever serves that, no node holds such a volume.
#[must_use]
pub fn supposed_classes(name: &str) -> &'static [StorageClass] {
    let mut words = name.split(|it: char| !it.is_ascii_alphanumeric());
    match likely_classes(name) {
        [] if words.any(|word| word.eq_ignore_ascii_case("nfs")) => likely_classes("nfs-csi"),
        classes => classes,
    }
}

/// A file that cannot be read is a build that went wrong, which a test rules out.
fn read(text: &str) -> Result<HashMap<Text, Vec<StorageClass>>, serde_saphyr::Error> {
    #[derive(Deserialize)]
    struct File {
        groups: Vec<Group>,
    }
    let file: File = serde_saphyr::from_str(text)?;
    let mut classes: HashMap<Text, Vec<StorageClass>> = HashMap::new();
    for group in file.groups {
        for name in group.classes {
            let class = StorageClass {
                metadata: Metadata {
                    name: name.clone(),
                    ..Metadata::default()
                },
                provisioner: group.provisioner.clone(),
                parameters: group
                    .parameters
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.as_str()))
                    .collect(),
                ..StorageClass::default()
            };
            classes.entry(name).or_default().push(class);
        }
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Catalog;

    #[test]
    fn every_class_is_of_a_provisioner_that_the_catalog_knows() {
        let catalog = Catalog::embedded().unwrap();
        let classes = read(EMBEDDED).unwrap();
        for class in classes.values().flatten() {
            let known = catalog.get(&class.provisioner).is_some();
            assert!(known, "{}: {}", class.metadata.name, class.provisioner);
        }
        assert!(classes.len() >= 60, "{}", classes.len());
    }

    #[test]
    fn every_group_says_where_its_classes_were_found() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Row {
            provisioner: String,
            classes: Vec<String>,
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
            assert!(!row.classes.is_empty(), "{}", row.provisioner);
            let empty = row.parameters.values().any(String::is_empty);
            assert!(!empty, "{}", row.provisioner);
        }
    }

    #[test]
    fn names_that_mean_many_things_mean_nothing_here() {
        for name in ["standard", "default", "fast", "nfs", "local-storage", ""] {
            assert!(likely_classes(name).is_empty(), "{name}");
        }
        let provisioners: Vec<_> = likely_classes("standard-rwo")
            .iter()
            .map(|class| class.provisioner.as_str())
            .collect();
        assert_eq!(
            provisioners,
            ["pd.csi.storage.gke.io", "disk.csi.azure.com"]
        );
        assert_eq!(likely_classes("gp3")[0].parameters.get("type"), Some("gp3"));
    }

    #[test]
    fn nfs_as_a_word_of_a_name_means_nfs() {
        let provisioner = |name| {
            let classes = supposed_classes(name);
            classes.first().map(|class| class.provisioner.as_str())
        };
        for name in ["nfs", "team-nfs-data", "NFS.slow"] {
            assert_eq!(provisioner(name), Some("nfs.csi.k8s.io"), "{name}");
        }
        for name in ["infsight", "standard", ""] {
            assert_eq!(provisioner(name), None, "{name}");
        }
        let known = Some("pd.csi.storage.gke.io");
        assert_eq!(provisioner("standard-rwo"), known);
    }
}
