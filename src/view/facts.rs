//! Facts from files: manifests that stand for a cluster.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use crate::cluster::Cluster;
use crate::manifest::decode::DecodeError;
use crate::manifest::error::ReadError;
use crate::manifest::objects::{Manifest, object_at};
use crate::manifest::place::line_and_column;
use crate::manifest::read::{Place, read};
use crate::manifest::source::{Source, find};
use crate::manifest::split::parts;
use crate::manifest::tree::Tree;
use crate::model::object::{Object, ObjectKind};

/// The namespace of namespaced objects that name none, as for kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// Facts that could not be read. Facts that are half there would mislead, so
/// one fault in one file is enough; all faults are told at once.
#[derive(Debug)]
pub struct FactsError(Vec<FactsFault>);

impl FactsError {
    /// Every fault, in the order of the files. Never empty.
    #[must_use]
    pub fn faults(&self) -> &[FactsFault] {
        &self.0
    }
}

/// One fault a line.
impl fmt::Display for FactsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FactsError {}

/// One fault in the files given as facts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactsFault {
    /// A file that cannot be read or does not parse.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// An object whose fields are not what the Kubernetes API says.
    #[error("{at}: This {kind} cannot be read as a fact: {reason}.")]
    Malformed {
        /// Where the object starts.
        at: Spot,
        /// `StorageClass` for example.
        kind: &'static str,
        /// What was found and what was expected.
        reason: DecodeError,
    },
    /// An object without a name.
    #[error("{at}: This {kind} has no name; a fact needs metadata.name.")]
    Nameless {
        /// Where the object starts.
        at: Spot,
        /// `StorageClass` for example.
        kind: &'static str,
    },
    /// Files that hold nothing of use, a wrong path most likely.
    #[error(
        "{paths}: There is no fact here; expected YAML or JSON files with StorageClasses, PersistentVolumes, Nodes and the like."
    )]
    Nothing {
        /// The paths as given.
        paths: String,
    },
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file as the user named it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

/// `facts/nodes.yaml:12:3`.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A cluster of the objects in the files and directories `paths`; `-` reads
/// `stdin`. Kinds that decide nothing are passed over. What the files do not
/// hold is absent: they are taken for the whole cluster.
///
/// # Errors
///
/// When a file cannot be read or parsed, an object is malformed, or nothing of
/// use is found at all.
pub fn load(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Cluster, FactsError> {
    let mut cluster = Cluster::complete();
    load_into(&mut cluster, paths, stdin)?;
    Ok(cluster)
}

/// As [`load`], into a cluster that may hold facts already.
///
/// # Errors
///
/// As [`load`]; the cluster then holds those facts that could be read.
pub fn load_into(
    cluster: &mut Cluster,
    paths: &[PathBuf],
    stdin: &mut dyn Read,
) -> Result<(), FactsError> {
    let found = find(paths, stdin);
    let reading = read(&found.sources, decode, || {});
    let mut faults: Vec<FactsFault> = found.errors.into_iter().map(FactsFault::from).collect();
    faults.extend(reading.errors.into_iter().map(FactsFault::from));
    let mut facts = 0_usize;
    for (place, decoded) in reading.objects {
        match decoded {
            None => {}
            Some((_, Ok(mut object))) => {
                facts += 1;
                place_in_default_namespace(&mut object);
                cluster.apply(object);
            }
            Some((kind, Err(reason))) => {
                let at = spot(&found.sources[place.source], &place);
                let kind = kind.name();
                faults.push(match reason {
                    Fault::Nameless => FactsFault::Nameless { at, kind },
                    Fault::Malformed(reason) => FactsFault::Malformed { at, kind, reason },
                });
            }
        }
    }
    if faults.is_empty() && facts == 0 {
        let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        let paths = paths.join(", ");
        faults.push(FactsFault::Nothing { paths });
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(FactsError(faults))
    }
}

enum Fault {
    Nameless,
    Malformed(DecodeError),
}

fn decode(manifest: &Manifest<'_, '_>) -> Option<(ObjectKind, Result<Object, Fault>)> {
    let kind = ObjectKind::of_manifest(manifest.api_version, manifest.kind)?;
    let decoded = manifest
        .tree
        .decode_seed(manifest.id, kind)
        .map_err(Fault::Malformed)
        .and_then(|object| {
            if is_named(&object) {
                Ok(object)
            } else {
                Err(Fault::Nameless)
            }
        });
    Some((kind, decoded))
}

fn is_named(object: &Object) -> bool {
    let name = match object {
        Object::Volume(volume) => &volume.name,
        Object::StorageClass(class) => &class.name,
        Object::CsiDriver(driver) => &driver.name,
        Object::Node(node) => &node.name,
        Object::Workload(_)
        | Object::Claim(_)
        | Object::Namespace(_)
        | Object::Autoscaler(_)
        | Object::Scale(_) => {
            return object.metadata().is_some_and(|metadata| {
                !metadata.name.is_empty() || !metadata.generate_name.is_empty()
            });
        }
    };
    !name.is_empty()
}

fn place_in_default_namespace(object: &mut Object) {
    if matches!(object, Object::Namespace(_)) {
        return;
    }
    if let Some(metadata) = object.metadata_mut()
        && metadata.namespace.is_empty()
    {
        metadata.namespace = DEFAULT_NAMESPACE.into();
    }
}

/// Where an object starts. The file is read again: only objects at fault need it.
fn spot(source: &Source, place: &Place) -> Spot {
    let line_and_column = || {
        let text = source.text().ok()?;
        let part = parts(&text).into_iter().nth(place.part)?;
        let tree = Tree::parse(part.text).ok()??;
        let node = tree.node(object_at(&tree, &place.items)?);
        let (line, column) = line_and_column(part.text, node.start as usize);
        Some((line + part.line - 1, column))
    };
    let (line, column) = line_and_column().unwrap_or((1, 1));
    Spot {
        file: source.name.clone(),
        line,
        column,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::cluster::Lookup;
    use crate::model::workload::WorkloadKind;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn load_folder(folder: &TempDir) -> Result<Cluster, String> {
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
        let web = cluster
            .view()
            .workload(WorkloadKind::Deployment, "shop", "web");
        assert!(web.found().is_some());
        assert_eq!(cluster.view().volume("pv"), Lookup::Absent);
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let cases: [(&str, &str, &str); 5] = [
            ("not YAML", "kind: [Node", "f.yaml:1:"),
            (
                "a field of the wrong type",
                "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n# a class\napiVersion: storage.k8s.io/v1\n\
                 kind: StorageClass\nmetadata: {name: c}\nprovisioner: [x]\n",
                "f.yaml:6:1: This StorageClass cannot be read as a fact: invalid type: sequence",
            ),
            (
                "an item of a list",
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {}\n",
                "f.yaml:4:3: This Node has no name; a fact needs metadata.name.",
            ),
            (
                "nothing of use",
                "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
                "There is no fact here",
            ),
            ("nothing at all", "", "There is no fact here"),
        ];
        for (name, text, expected) in cases {
            let error = load_folder(&folder(&[("f.yaml", text)])).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
        let both = load_folder(&folder(&[("a.yaml", "a: ["), ("b.yaml", "b: [")])).unwrap_err();
        assert!(
            both.contains("a.yaml:") && both.contains("b.yaml:"),
            "{both}"
        );
        let missing = load(&["/no/such/folder".into()], &mut std::io::empty());
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .starts_with("/no/such/folder: ")
        );
    }
}
