//! The namespaces of objects that name none.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use super::ids::TextId;
use super::neighbours::Neighbours;
use super::text::Text;
use engine::model::Text as Name;
use manifest::facts::DEFAULT_NAMESPACE;
use manifest::objects::Item;

/// The namespace that the objects of a file or a folder name; `None` if they name several.
type Named = Option<Name>;

/// The namespaces that the input names.
#[derive(Default)]
pub(super) struct Namespaces {
    /// The namespace from `--namespace`.
    given: Option<String>,
    of_text: HashMap<TextId, Named>,
    /// The namespaces by folder, including those named in the folders inside it.
    of_folder: HashMap<PathBuf, Named>,
}

impl Namespaces {
    pub(super) fn of(objects: &[Item], texts: &[Text], given: Option<&str>) -> Self {
        let mut all = Self { given: given.map(str::to_owned), ..Self::default() };
        let named = objects.iter().filter(|known| known.is_judged());
        for known in named {
            let Some(namespace) = &known.reference.namespace else {
                continue;
            };
            let id = TextId::of(known);
            note(&mut all.of_text, id, namespace);
            for folder in folders(&texts[id.0]) {
                note(&mut all.of_folder, folder.to_owned(), namespace);
            }
        }
        all
    }

    /// The namespace of objects in the source that name none: that of the kustomization in its
    /// folder, or the one from `--namespace`, or the only one that is named in the same file, in
    /// the same folder and those inside it, or in the folders above.
    pub(super) fn around(&self, id: TextId, text: &Text, neighbours: &Neighbours) -> Name {
        let of_kustomization = neighbours.namespace_beside(text);
        if let Some(namespace) = of_kustomization.or(self.given.as_deref()) {
            return namespace.into();
        }
        let of_folders = folders(text).filter_map(|folder| self.of_folder.get(folder));
        self.of_text
            .get(&id)
            .into_iter()
            .chain(of_folders)
            .next()
            .cloned()
            .flatten()
            .unwrap_or_else(|| DEFAULT_NAMESPACE.into())
    }
}

/// The folders that contain a file; none for rendered or piped texts.
fn folders(text: &Text) -> impl Iterator<Item = &Path> {
    text.file().into_iter().flat_map(|path| path.ancestors().skip(1))
}

/// Notes a value of `key`; a key with several values gets `None`.
pub(super) fn note<K: Eq + Hash, V: Clone + PartialEq>(
    all: &mut HashMap<K, Option<V>>,
    key: K,
    value: &V,
) {
    let known = all.entry(key).or_insert_with(|| Some(value.clone()));
    if known.as_ref() != Some(value) {
        *known = None;
    }
}
