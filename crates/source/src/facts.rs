//! Builds a snapshot from files: manifests that stand for a cluster.

use std::io::Read;
use std::path::PathBuf;

use engine::snapshot::Snapshot;
pub use manifest::facts::FactsError;
use manifest::facts::apply;
use manifest::find::{Exclude, find};

/// Loads the objects in the files and directories `paths`; `-` reads `stdin`. Kinds that no
/// verdict depends on are ignored. Other objects are absent: the files are the whole cluster.
///
/// # Errors
///
/// Fails if a file cannot be read or parsed, an object is malformed, or there are no facts.
pub fn load(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Snapshot, FactsError> {
    let mut cluster = Snapshot::complete();
    let found = find(paths, &Exclude::nothing(), stdin);
    apply(&mut cluster, &found.sources, found.errors, || {
        let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        paths.join(", ")
    })?;
    Ok(cluster)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use engine::model::object::ObjectKind;
    use engine::model::workload::WorkloadKind;
    use engine::snapshot::Lookup;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn load_folder(folder: &TempDir) -> Result<Snapshot, String> {
        let root = format!("{}/", folder.path().display());
        load(&[folder.path().to_path_buf()], &mut std::io::empty())
            .map_err(|error| error.to_string().replace(&root, ""))
    }

    #[test]
    fn documents_lists_and_json_become_facts_and_the_rest_is_absent() {
        let cluster = load_folder(&folder(&[
            (
                "a.yaml",
                "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: p\n\
                 ---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
                 ---\napiVersion: example.com/v1\nkind: Node\nmetadata: {name: odd}\n",
            ),
            (
                "b.json",
                r#"{"apiVersion":"v1","kind":"List","items":[
                    {"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}},
                    {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}]}"#,
            ),
        ]))
        .unwrap();
        assert!(cluster.view().storage_class("fast").found().is_some());
        assert!(cluster.view().claim("default", "data").found().is_some());
        assert_eq!(cluster.view().claim("shop", "data"), Lookup::Absent);
        assert_eq!(cluster.count(ObjectKind::Node), 1);
        let web = cluster.view().workload(WorkloadKind::Deployment, "shop", "web");
        assert!(web.found().is_some());
        assert_eq!(cluster.view().volume("pv"), Lookup::Absent);
    }

    #[test]
    fn what_is_no_fact_is_reported_with_its_position() {
        let cases = [
            (
                "an item of a list",
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {}\n",
                "f.yaml:4:3: This Node has no name; a fact needs metadata.name.",
            ),
            (
                "a placeholder",
                "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\n\
                 metadata: {name: '{{ c }}'}\nprovisioner: p\n",
                "Placeholders such as ${NAME} or {{ .Values.name }} remain in 1 of the objects;",
            ),
        ];
        for (name, text, expected) in cases {
            let error = load_folder(&folder(&[("f.yaml", text)])).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
        let broken = "apiVersion: v1\nkind: Node\na: [";
        let both = load_folder(&folder(&[("a.yaml", broken), ("b.yaml", broken)])).unwrap_err();
        assert!(both.contains("a.yaml:") && both.contains("b.yaml:"), "{both}");
    }
}
