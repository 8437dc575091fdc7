//! Puts what was fetched where kustomizations name it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use manifest::delivery::value_of;
use serde_json::Value;

use super::super::fetch::Base;
use super::program::Failure;
use super::roots::{Fetched, Root};
use super::sandbox::Copy;

/// The fields of a kustomization that name bases.
const FIELDS: [&str; 3] = ["resources", "bases", "components"];

/// Names what was fetched in the copies of the root's kustomizations.
pub(super) fn write(root: &Root, copy: &Copy) -> Result<(), Failure> {
    for fetched in &root.fetched {
        put(fetched, copy).map_err(Failure::Copy)?;
    }
    Ok(())
}

fn put(Fetched { file, name, base }: &Fetched, copy: &Copy) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    let inner = match base {
        Base::Folder(target) => relative(&copy.of_original(folder), &copy.of_original(target)),
        Base::File(target) => {
            let name = target.file_name().unwrap_or_default();
            copy.add(target, folder, &name.to_string_lossy())?;
            PathBuf::from(name)
        }
    };
    let copied = copy.of_original(file);
    let text = fs::read_to_string(&copied)?;
    let Some(mut kustomization) = value_of(&text) else {
        return Ok(());
    };
    for field in FIELDS {
        let names = kustomization.get_mut(field).and_then(Value::as_array_mut);
        for named in names.into_iter().flatten().filter(|it| *it == name) {
            *named = Value::String(inner.to_string_lossy().into_owned());
        }
    }
    fs::write(copied, kustomization.to_string())
}

/// The path from one folder to another one, or to itself; both are absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| Path::new(".."));
    let down = to[common..].iter().map(Path::new);
    [Path::new(".")].into_iter().chain(up).chain(down).collect()
}
