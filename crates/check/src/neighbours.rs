//! The kustomizations among the files, for the files in the same folders.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::files::Files;
use super::text::Text;
use manifest::kustomization::{FILE_NAMES, Kustomization};

/// The kustomizations among the files, for the files in the same folders.
#[derive(Default)]
pub(super) struct Neighbours {
    /// The kustomizations by their folder, with links followed.
    all: HashMap<PathBuf, Kustomization>,
    /// Files that are patches, with links followed.
    patches: HashSet<PathBuf>,
    /// Folders of components, with links followed.
    components: HashSet<PathBuf>,
}

impl Neighbours {
    pub(super) fn among(texts: &[Text], files: &dyn Files) -> Self {
        let all: HashMap<PathBuf, Kustomization> = texts
            .iter()
            .filter_map(|text| {
                let path = text.file()?;
                let name = path.file_name()?;
                FILE_NAMES.iter().find(|known| name == **known)?;
                let read = Kustomization::read(&text.source.text().ok()?)?;
                Some((path.parent()?.to_owned(), read))
            })
            .collect();
        let real = |folder: &Path, name: &String| files.real(&folder.join(name));
        let (mut patches, mut components) = (HashSet::new(), HashSet::new());
        for (folder, read) in &all {
            // A patch may be written in the kustomization itself; it is not a name then.
            let names = read.patches.iter().filter(|name| !name.contains('\n'));
            patches.extend(names.filter_map(|name| real(folder, name)));
            components
                .extend(read.components.iter().filter_map(|component| real(folder, component)));
            if read.is_component {
                components.insert(folder.clone());
            }
        }
        Self { all, patches, components }
    }

    pub(super) fn have_as_patch(&self, text: &Text) -> bool {
        !self.all.is_empty()
            && text.file().is_some_and(|path| {
                self.patches.contains(path)
                    || path.ancestors().any(|folder| self.components.contains(folder))
            })
    }

    /// The namespace that the kustomization in the folder of a file sets.
    pub(super) fn namespace_beside(&self, text: &Text) -> Option<&str> {
        let folder = text.file()?.parent()?;
        self.all.get(folder)?.namespace.as_deref()
    }
}
