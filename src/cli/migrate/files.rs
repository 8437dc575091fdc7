//! The files of a plan.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ::report::migration::{self as report, MigrationError, Objects};
use doctor::migration::MigrationPlan;

/// The plan itself; its commands are for a shell in the same directory.
const PLAN: &str = "README.md";

/// Why the files were not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum FilesError {
    /// What is there stays.
    #[error("{} is there already. Nothing was written; name another directory with --out.", .0.display())]
    Exists(PathBuf),
    /// A file or the directory cannot be written.
    #[error("{} could not be written: {source}.", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The plan cannot be put as text.
    #[error(transparent)]
    MigrationPlan(#[from] MigrationError),
}

/// Writes the plan and its objects into `directory`, which is made where it is not there.
///
/// # Errors
/// When one of the files is there already, and then none is written; or when one cannot
/// be written.
pub(super) fn write(plan: &MigrationPlan, directory: &Path) -> Result<(), FilesError> {
    let mut readme = Vec::new();
    report::write(plan, Objects::Files(""), &mut readme)?;
    let mut files = vec![(directory.join(PLAN), readme)];
    for manifest in plan.manifests() {
        let text = serde_saphyr::to_string(&manifest.object).map_err(MigrationError::Yaml)?;
        files.push((directory.join(&manifest.file), text.into_bytes()));
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(FilesError::Exists(path.clone()));
    }
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| FilesError::Write { path, source }
    };
    fs::create_dir_all(directory).map_err(at(directory))?;
    for (path, content) in files {
        let mut file = File::create_new(&path).map_err(at(&path))?;
        file.write_all(&content).map_err(at(&path))?;
    }
    Ok(())
}
