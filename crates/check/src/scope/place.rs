//! Where sources are, as far as it decides who sees what.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::super::text::Text;

/// The places of all sources.
pub(super) struct Places {
    all: Vec<Place>,
}

#[derive(Clone)]
struct Place {
    /// The numbers of the names on the way to its folder; `None` for standard input and
    /// pipes, which are everywhere.
    folder: Option<Vec<u32>>,
    /// Its number where it was rendered; `None` for files.
    rendered: Option<usize>,
    /// The numbers of the kustomizations that take it and were not rendered.
    unrendered: Vec<usize>,
    /// Its number in the order of the folders, in which neighbours are near.
    rank: usize,
}

impl Places {
    pub(super) fn of(texts: &[Text]) -> Self {
        let mut names: HashMap<OsString, u32> = HashMap::new();
        let mut all: Vec<Place> = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            // What a release delivers lies where the release does, which is an earlier text.
            if let Some(release) = text.release() {
                let holder: &Place = &all[release.place.source];
                let place = holder.clone();
                all.push(place);
                continue;
            }
            let folder = text.file().and_then(Path::parent).map(|folder| {
                let mut number = |name| {
                    let next = names.len() as u32;
                    *names.entry(OsString::from(name)).or_insert(next)
                };
                folder.iter().map(&mut number).collect()
            });
            all.push(Place {
                folder,
                rendered: text.is_rendered().then_some(number),
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

    /// Of two sources with ranks on the same side of a third one, the one whose rank is
    /// nearer is at least as near.
    pub(super) fn rank(&self, source: usize) -> usize {
        self.all[source].rank
    }

    /// How near `to` is to `from`; `None` where one does not see the other.
    pub(super) fn nearness(&self, from: usize, to: usize) -> Option<usize> {
        let (here, there) = (&self.all[from], &self.all[to]);
        if !here.sees(there) {
            return None;
        }
        if from == to {
            return Some(usize::MAX);
        }
        Some(match (&here.folder, &there.folder) {
            // What lies in a folder is nearer than what lies in one inside it.
            (Some(here), Some(there)) => {
                2 * shared(here, there) + usize::from(here.starts_with(there))
            }
            _ => 0,
        })
    }

    /// Whether one of two sources lies in the folder of the other.
    pub(super) fn is_beside(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.all[from], &self.all[to]);
        here.sees(there)
            && match (&here.folder, &there.folder) {
                (Some(here), Some(there)) => here.starts_with(there) || there.starts_with(here),
                _ => true,
            }
    }

    /// Whether two sources lie in one folder or one inside the other, or are taken by one
    /// kustomization.
    pub(super) fn belongs_to(&self, from: usize, to: usize) -> bool {
        self.is_beside(from, to) || self.all[from].is_taken_with(&self.all[to])
    }

    /// Whether two sources lie in folders apart: neither in the folder of the other, nor
    /// in two folders side by side, nor taken by one kustomization.
    pub(super) fn is_apart(&self, from: usize, to: usize) -> bool {
        let (here, there) = (&self.all[from], &self.all[to]);
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

    /// Whether a kustomization that was not rendered takes both.
    fn is_taken_with(&self, other: &Self) -> bool {
        let mut roots = self.unrendered.iter();
        roots.any(|root| other.unrendered.contains(root))
    }
}

/// How many names the ways to two folders share.
fn shared(here: &[u32], there: &[u32]) -> usize {
    let pairs = here.iter().zip(there);
    pairs.take_while(|(a, b)| a == b).count()
}
