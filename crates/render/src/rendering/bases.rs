//! Puts bases and files that kustomizations name, but that are elsewhere, where kustomize finds
//! them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use manifest::delivery::value_of;
use serde_json::Value;

use super::roots::{Fetched, Root};
use crate::program::run::Failure;
use crate::program::sandbox::Copy;

/// The fields of a kustomization that name bases and files, and the field of each item that
/// contains the name, if the item is a mapping.
const FIELDS: [(&str, Option<&str>); 6] = [
    ("resources", None),
    ("bases", None),
    ("components", None),
    ("patchesStrategicMerge", None),
    ("patches", Some("path")),
    ("patchesJson6902", Some("path")),
];

/// Replaces the names of fetched and outside resources in the copies of the root's kustomizations.
pub(super) fn write(root: &Root, copy: &Copy) -> Result<(), Failure> {
    let mut files: BTreeMap<&Path, HashMap<&str, Value>> = BTreeMap::new();
    for (number, Fetched { file, name, base }) in root.fetched.iter().enumerate() {
        let folder = file.parent().unwrap_or(file);
        let inner = if base.is_dir() {
            relative(&copy.of_original(folder), &copy.of_original(base))
        } else {
            let own_name = base.file_name().unwrap_or_default().to_string_lossy();
            let name_there = if base.starts_with(&root.top) {
                // The folder may already contain a file with the original name.
                format!("outside-{number}-{own_name}")
            } else {
                own_name.into_owned()
            };
            copy.add(base, folder, &name_there)?;
            PathBuf::from(name_there)
        };
        let inner = Value::String(inner.to_string_lossy().into_owned());
        files.entry(file).or_default().insert(name, inner);
    }
    for (file, named) in files {
        let copied = copy.of_original(file);
        let text = fs::read_to_string(&copied).map_err(Failure::Copy)?;
        let Some(mut kustomization) = value_of(&text) else {
            continue;
        };
        for (field, of_item) in FIELDS {
            let items = kustomization.get_mut(field).and_then(Value::as_array_mut);
            for item in items.into_iter().flatten() {
                let name = match of_item {
                    Some(key) => item.get_mut(key),
                    None => Some(item),
                };
                if let Some(name) = name
                    && let Some(inner) = name.as_str().and_then(|written| named.get(written))
                {
                    name.clone_from(inner);
                }
            }
        }
        fs::write(copied, kustomization.to_string()).map_err(Failure::Copy)?;
    }
    Ok(())
}

/// The path from one folder to another one, or to itself; both are absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| Path::new(".."));
    let down = to[common..].iter().map(Path::new);
    [Path::new(".")].into_iter().chain(up).chain(down).collect()
}
