//! The charts that a chart depends on and does not contain.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::roots::{CHART, Places, Root, RootKind};
use crate::fetch::Remote;
use crate::files::{MAX_ROOT_FILE, is_inside, normal, text_inside};
use crate::reason::Reason;
use manifest::delivery::value_of;
use report::Cause;

/// The location of a chart that another one names and does not contain.
enum Place {
    /// A folder, with links followed.
    Folder(PathBuf),
    Remote(Remote),
}

/// The schemes of repositories and registries.
const SCHEMES: [&str; 3] = ["oci://", "http://", "https://"];

/// The charts that must be fetched for the chart in the folder.
pub(crate) fn remote(folder: &Path) -> Vec<Remote> {
    missing(folder)
        .into_iter()
        .filter_map(|(_, place)| match place {
            Place::Remote(remote) => Some(remote),
            Place::Folder(_) => None,
        })
        .collect()
}

/// Adds to a chart the dependencies that are available.
pub(crate) fn add(root: &mut Root, places: Places<'_>) {
    if root.kind != RootKind::Chart {
        return;
    }
    let top = places.repository.top_of(&root.real).to_owned();
    for (name, place) in missing(&root.real) {
        // A chart may depend on another one several times, under different aliases.
        let is_added = |addition: &(PathBuf, String)| {
            addition.1 == name || addition.1.strip_suffix(".tgz") == Some(&*name)
        };
        if root.additions.iter().any(is_added) {
            continue;
        }
        match place {
            Place::Folder(folder) if root.real.starts_with(&folder) => {
                let text = format!("it depends on {name}, the chart that it lies in");
                root.refused.get_or_insert(Reason::of(Cause::Dependencies, &text));
            }
            Place::Folder(folder) if is_inside(&top, &folder) => {
                root.top.clone_from(&top);
                root.folders.insert(folder.clone());
                root.additions.push((folder, name));
            }
            Place::Folder(_) => {}
            Place::Remote(remote) => match places.fetcher.file(&remote) {
                Some(Ok(file)) => root.additions.push((file, format!("{name}.tgz"))),
                Some(Err(reason)) => root.refused = root.refused.take().or(Some(reason)),
                None => {}
            },
        }
    }
}

/// The dependencies of the chart that its `charts` folder lacks, by their names, in the versions of
/// its lock file.
fn missing(folder: &Path) -> Vec<(String, Place)> {
    let content = |file: &str| {
        let text = text_inside(folder, &folder.join(file), MAX_ROOT_FILE).ok();
        text.and_then(|text| value_of(&text)).unwrap_or_default()
    };
    let list = |file: &str| content(file)["dependencies"].as_array().cloned().unwrap_or_default();
    let locked = list("Chart.lock");
    let held: Vec<String> = fs::read_dir(folder.join("charts"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let of_one = |entry: &Value| {
        let name = text(entry, "name")?;
        let is_held = held.iter().any(|file| {
            *file == name || file.starts_with(&format!("{name}-")) && file.ends_with(".tgz")
        });
        if is_held {
            return None;
        }
        let version = locked
            .iter()
            .find(|lock| text(lock, "name").as_ref() == Some(&name))
            .and_then(|lock| text(lock, "version"))
            .or_else(|| text(entry, "version"));
        let url = text(entry, "repository")?;
        let place = if let Some(path) = url.strip_prefix("file://") {
            Place::Folder(fs::canonicalize(normal(&folder.join(path))).ok()?)
        } else if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
            let version = version.unwrap_or_default();
            Place::Remote(Remote::chart(&url, &name, Some(&version)))
        } else {
            // Only Helm's own configuration resolves an alias.
            return None;
        };
        Some((name, place))
    };
    list(CHART).iter().filter_map(of_one).collect()
}
