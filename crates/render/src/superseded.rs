//! Decides which texts the output of deliveries replaces.
//!
//! A folder may be rendered by itself before a release is found that adds to it. The output of the
//! release then replaces that rendering, and everything that only that rendering delivers.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::discover::Kustomizations;
use super::releases::{MAX_DEPTH, Release, Standing};
use super::rendering::roots::RootKind;
use check::Text;
use check::text::Origin;

/// The most rounds in which the texts of one level of deliveries decide about those of the next.
const MAX_ROUNDS: usize = 4 * MAX_DEPTH;

/// Releases, by the folders from which they are rendered without their additions.
pub(super) struct ByFolder<'r>(HashMap<&'r Path, Vec<Rendered>>);

/// A rendered release.
#[derive(Clone, Copy)]
struct Rendered {
    number: usize,
    /// Whether its output contains all objects in the folder.
    holds_files: bool,
}

impl<'r> ByFolder<'r> {
    /// The releases with their numbers.
    pub(super) fn of(
        releases: impl Iterator<Item = (usize, &'r Release)>,
        kustomizations: Kustomizations,
    ) -> Self {
        let mut by_folder: HashMap<&Path, Vec<Rendered>> = HashMap::new();
        for (number, release) in releases {
            let Some(folder) = release.chart.folder() else {
                continue;
            };
            let holds_files = release.chart.is_generated()
                && (kustomizations == Kustomizations::Rendered || release.changes());
            by_folder.entry(folder).or_default().push(Rendered { number, holds_files });
        }
        Self(by_folder)
    }

    /// The numbers of the releases whose output contains the objects of the text.
    pub(super) fn replacing(&self, text: &Text) -> impl Iterator<Item = usize> {
        let root = text.root().map(|root| root.real.as_path());
        let above = path_of(text).into_iter().flat_map(Path::ancestors);
        above
            .flat_map(move |folder| {
                let here = self.0.get(folder).into_iter().flatten();
                here.filter(move |release| release.holds_files || root == Some(folder))
            })
            .map(|release| release.number)
    }
}

/// The folder that was rendered, or the file; `None` for the output of a release.
fn path_of(text: &Text) -> Option<&Path> {
    text.root().map(|root| root.real.as_path()).or_else(|| text.file())
}

/// The deliveries that decide about a text.
struct Deciding {
    /// The numbers of the releases that replace it.
    replaced_by: Vec<usize>,
    /// The texts that deliver its folder without it, because no kustomization there lists it.
    left_out_by: Vec<usize>,
    /// The texts that deliver it unchanged.
    kept_by: Vec<usize>,
}

impl Deciding {
    /// Whether other deliveries than the release `except` replace the text or leave it out.
    fn is_replaced(&self, superseded: &HashSet<usize>, except: Option<usize>) -> bool {
        let is_live = |number: &&usize| !superseded.contains(*number);
        self.replaced_by
            .iter()
            .chain(&self.left_out_by)
            .filter(is_live)
            .any(|number| Some(*number) != except)
            && self.kept_by.iter().all(|number| superseded.contains(number))
    }
}

impl Standing {
    /// Whether the folder has no kustomization, so that Flux makes one of everything in it, and a
    /// kustomization inside it does not list the text.
    fn leaves_out(&self, text: &Text) -> bool {
        let has_kustomization = |folder: &Path| RootKind::Kustomization.file_in(folder).is_some();
        let is_manifest = matches!(text.origin, Origin::Kustomization(_) | Origin::Input);
        is_manifest
            && text.taken_by.is_empty()
            && !has_kustomization(&self.folder)
            && path_of(text).is_some_and(|path| {
                path.ancestors()
                    .skip(1)
                    .take_while(|folder| *folder != self.folder)
                    .any(has_kustomization)
            })
    }
}

/// The numbers of the texts that the output of releases replaces, and of the output of releases that
/// only such texts contain.
pub(super) fn superseded(
    texts: &[Text],
    releases: &ByFolder<'_>,
    standing: &[Standing],
    kustomizations: Kustomizations,
) -> HashSet<usize> {
    let mut by_folder: HashMap<&Path, Vec<&Standing>> = HashMap::new();
    for delivery in standing {
        by_folder.entry(&delivery.folder).or_default().push(delivery);
    }
    let about = |text: &Text| {
        let above = path_of(text).into_iter().flat_map(Path::ancestors);
        let unchanged = above.filter_map(|folder| by_folder.get(folder)).flatten();
        let (left_out, kept): (Vec<&Standing>, Vec<&Standing>) =
            unchanged.copied().partition(|delivery: &&Standing| {
                kustomizations == Kustomizations::Rendered && delivery.leaves_out(text)
            });
        Deciding {
            replaced_by: releases.replacing(text).collect(),
            left_out_by: left_out.iter().map(|delivery| delivery.holder).collect(),
            kept_by: kept.iter().map(|delivery| delivery.holder).collect(),
        }
    };
    let deciding: Vec<Deciding> = texts.iter().map(about).collect();
    let mut superseded = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let before = superseded.clone();
        for (number, text) in texts.iter().enumerate() {
            let is_superseded = match text.release() {
                // A release that delivers itself is kept.
                Some(release) => release.held_by.iter().all(|holder| {
                    superseded.contains(holder) && texts[*holder].release().is_some()
                        || deciding[*holder].is_replaced(&superseded, Some(number))
                }),
                None => deciding[number].is_replaced(&superseded, None),
            };
            if is_superseded {
                superseded.insert(number);
            } else {
                superseded.remove(&number);
            }
        }
        if superseded == before {
            break;
        }
    }
    superseded
}
