//! The places of sources, which decide which objects are facts for each other.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::super::ids::TextId;
use super::super::text::Text;

/// The places of all sources.
pub(super) struct Places {
    all: Vec<Place>,
}

#[derive(Clone)]
struct Place {
    /// The numbers of the names in the path of its folder; `None` for standard input and pipes,
    /// which are near every source.
    folder: Option<Vec<u32>>,
    /// The text if it was rendered; `None` for files.
    rendered: Option<TextId>,
    /// The numbers of the unrendered kustomizations that include it.
    unrendered: Vec<usize>,
    /// Its number in the order of the folders, in which neighbours are close to each other.
    rank: usize,
}

impl Places {
    pub(super) fn of(texts: &[Text]) -> Self {
        let mut names: HashMap<OsString, u32> = HashMap::new();
        let mut all: Vec<Place> = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            // The output of a release has the place of the release, which is in an earlier text.
            if let Some(release) = text.release() {
                all.push(all[release.place.source].clone());
                continue;
            }
            let folder = text.file().and_then(Path::parent).map(|folder| {
                let mut number_of = |name| {
                    let next = names.len() as u32;
                    *names.entry(OsString::from(name)).or_insert(next)
                };
                folder.iter().map(&mut number_of).collect()
            });
            all.push(Place {
                folder,
                rendered: text.is_rendered().then_some(TextId(number)),
                unrendered: text.taken_by.clone(),
                rank: 0,
            });
        }
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|a, b| all[*a].folder.cmp(&all[*b].folder));
        for (rank, number) in order.into_iter().enumerate() {
            all[number].rank = rank;
        }
        Self { all }
    }

    /// If the ranks of two sources are on the same side of the rank of a third one, the source with
    /// the closer rank is at least as near to it.
    pub(super) fn rank(&self, source: TextId) -> usize {
        self.all[source.0].rank
    }

    /// The nearness of `to` to `from`; `None` if the objects of one are not facts for the other.
    pub(super) fn nearness(&self, from: TextId, to: TextId) -> Option<usize> {
        let (here, there) = (&self.all[from.0], &self.all[to.0]);
        if !here.sees(there) {
            return None;
        }
        if from == to {
            return Some(usize::MAX);
        }
        Some(match (&here.folder, &there.folder) {
            // A file in the same folder is nearer than a file in a folder inside it.
            (Some(here), Some(there)) => {
                2 * shared(here, there) + usize::from(here.starts_with(there))
            }
            _ => 0,
        })
    }

    /// Whether one of two sources is in the folder of the other, or in a folder inside it.
    pub(super) fn is_beside(&self, from: TextId, to: TextId) -> bool {
        let (here, there) = (&self.all[from.0], &self.all[to.0]);
        here.sees(there)
            && match (&here.folder, &there.folder) {
                (Some(here), Some(there)) => here.starts_with(there) || there.starts_with(here),
                _ => true,
            }
    }

    /// Whether two sources are in one folder or one inside the other, or are included by one
    /// kustomization.
    pub(super) fn belongs_to(&self, from: TextId, to: TextId) -> bool {
        self.is_beside(from, to) || self.all[from.0].is_taken_with(&self.all[to.0])
    }

    /// Whether two sources are in unrelated folders: neither contains the other, they are not two
    /// folders next to each other, and no kustomization includes both.
    pub(super) fn is_apart(&self, from: TextId, to: TextId) -> bool {
        let (here, there) = (&self.all[from.0], &self.all[to.0]);
        if here.is_taken_with(there) {
            return false;
        }
        let (Some(here), Some(there)) = (&here.folder, &there.folder) else {
            return false;
        };
        let shared = shared(here, there);
        let (here, there) = (here.len(), there.len());
        shared < here && shared < there && here.max(there) > shared + 1
    }
}

impl Place {
    fn sees(&self, other: &Self) -> bool {
        self.rendered == other.rendered
            && (self.unrendered.is_empty() && other.unrendered.is_empty()
                || self.is_taken_with(other))
    }

    /// Whether an unrendered kustomization includes both.
    fn is_taken_with(&self, other: &Self) -> bool {
        self.unrendered.iter().any(|root| other.unrendered.contains(root))
    }
}

/// The number of leading names that the paths of two folders share.
fn shared(here: &[u32], there: &[u32]) -> usize {
    here.iter().zip(there).take_while(|(a, b)| a == b).count()
}
