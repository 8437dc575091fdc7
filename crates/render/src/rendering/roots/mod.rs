//! Finds the folders to render: charts, and the kustomizations that no other one names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::fetch::Fetcher;
use crate::files::{GIT, MAX_ROOT_FILE, is_inside, normal, text_inside};
use crate::reason::Reason;
use crate::repository::Repository;
use check::Files as _;
use manifest::kustomization::{FILE_NAMES, Kustomization};

/// The file that makes a folder a chart.
pub(super) const CHART: &str = "Chart.yaml";

/// The most resources outside its folder that a kustomization may name.
const MAX_OUTSIDE: usize = 1_000;

/// The program that renders a root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// `helm template`.
    #[default]
    Chart,
    /// `kustomize build`.
    Kustomization,
}

impl RootKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chart => "chart",
            Self::Kustomization => "kustomization",
        }
    }

    /// The file that makes the folder such a root.
    pub(crate) fn file_in(self, folder: &Path) -> Option<PathBuf> {
        let names: &[&str] = match self {
            Self::Chart => &[CHART],
            Self::Kustomization => &FILE_NAMES,
        };
        names.iter().map(|name| folder.join(name)).find(|file| file.is_file())
    }
}

/// A folder to render.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) kind: RootKind,
    /// The folder, by the path through which it was found.
    pub(crate) folder: PathBuf,
    /// The folder, with links followed.
    pub(crate) real: PathBuf,
    /// The name of a release of the chart: the chart's own name. It is empty for a library chart.
    pub(super) release: String,
    /// The reason why rendering it is not attempted, if there is one.
    pub(super) refused: Option<Reason>,
    /// A text that may be a URL. It is harmless if rendering has no network.
    pub(super) url: Option<String>,
    /// The folders, with links followed, that are read when it is rendered.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Charts that are put into its `charts` folder, with their names there.
    pub(super) additions: Vec<(PathBuf, String)>,
    /// The folder that contains all of them except the fetched ones: that of the repository, if
    /// there is one.
    pub(crate) top: PathBuf,
    /// Resources that are outside the folder of the kustomization that names them.
    pub(super) fetched: Vec<Fetched>,
    /// Charts that kustomizations inflate.
    pub(super) inflated: Vec<Inflated>,
    /// The resources of a generated kustomization, relative to the folder, if the folder contains
    /// none.
    pub(super) generated: Option<Vec<PathBuf>>,
    /// The folder with all fetched repositories, with links followed.
    pub(super) laid_out: Option<PathBuf>,
    /// The files, with links followed, that are parts of a kustomization and not manifests by
    /// themselves. Each has the folder of a kustomization that may change its objects, if there is
    /// one.
    pub(crate) files: BTreeMap<PathBuf, Option<PathBuf>>,
    /// The patches among the files.
    pub(crate) patches: BTreeSet<PathBuf>,
    /// The patches that are written in a kustomization, with its name.
    pub(crate) inline_patches: Vec<(PathBuf, String)>,
}

impl Root {
    /// The folder, whose links are followed, with no other settings.
    fn new(kind: RootKind, real: &Path) -> Self {
        Self {
            kind,
            folder: real.to_owned(),
            real: real.to_owned(),
            folders: BTreeSet::from([real.to_owned()]),
            top: real.to_owned(),
            ..Self::default()
        }
    }

    /// The file that makes the folder a root.
    pub(crate) fn file(&self) -> PathBuf {
        self.kind.file_in(&self.folder).unwrap_or_else(|| self.folder.clone())
    }

    /// Adds the folders of a component that a release adds to those that the root names.
    pub(crate) fn add_component(&mut self, name: &str, places: Places<'_>) {
        let Some(folder) =
            real(&normal(&self.real.join(name))).filter(|folder| is_inside(&self.top, folder))
        else {
            let reason = format!("it takes the component {name}, which is not in this repository");
            self.refused.get_or_insert(reason.into());
            return;
        };
        self.take_in(&BTreeMap::new(), &folder, places);
    }

    /// Adds the folders that are read for the kustomization in a folder.
    fn take_in(&mut self, all: &BTreeMap<PathBuf, Named>, folder: &Path, places: Places<'_>) {
        for (reached, part) in reached_from(all, folder, places, |named| &named.reached) {
            self.folders.insert(reached);
            self.refused = self.refused.take().or(part.refused.clone());
            self.url = self.url.take().or(part.url.clone());
            self.fetched.extend(part.fetched.iter().cloned());
            self.inflated.extend(part.inflated.iter().cloned());
            let charts = part.inflated.iter().map(|inflated| &inflated.chart);
            self.folders.extend(charts.filter(|chart| chart.is_dir()).cloned());
        }
        self.laid_out = places.fetcher.top().map(Path::to_owned);
    }
}

/// A name in a kustomization for a fetched resource, or for a file or folder outside its own
/// folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// The file of the kustomization.
    pub(super) file: PathBuf,
    pub(super) name: String,
    /// The file or folder, with links followed.
    pub(super) base: PathBuf,
}

/// A chart that a kustomization inflates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inflated {
    /// The file of the kustomization.
    pub(super) file: PathBuf,
    /// Its index in `helmCharts`.
    pub(super) number: usize,
    /// The folder of the chart, or the fetched packed chart.
    pub(super) chart: PathBuf,
}

/// The places in which names in a root are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Places<'p> {
    pub(crate) repository: &'p Repository,
    pub(crate) fetcher: &'p Fetcher<'p>,
}

impl Places<'_> {
    /// The name, as shown in messages, of the folder, whose links are followed.
    fn name_of(self, folder: &Path) -> PathBuf {
        self.fetcher.display_name(folder).unwrap_or_else(|| self.repository.name_of(folder))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chart {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The roots among `files`, in the order of their folders. Library charts have nothing to render,
/// and a chart in another's `charts` folder is a part of that one.
pub(crate) fn find(files: &[PathBuf], places: Places<'_>) -> Vec<Root> {
    let mut charts: BTreeMap<PathBuf, Root> = BTreeMap::new();
    let mut kustomizations: BTreeMap<PathBuf, Named> = BTreeMap::new();
    for file in files {
        let (Some(name), Some(folder)) = (file.file_name(), file.parent()) else {
            continue;
        };
        if name == CHART {
            if let Some(root) = chart(folder) {
                charts.insert(root.real.clone(), root);
            }
        } else if FILE_NAMES.iter().any(|known| name == *known)
            && let Some(real) = real(folder)
            && let Some(named) = Named::read(folder, &real, places)
        {
            kustomizations.insert(real, named);
        }
    }
    let is_inner = |folder: &&PathBuf| {
        folder
            .ancestors()
            .skip(1)
            .any(|above| charts.contains_key(above) && folder.starts_with(above.join("charts")))
    };
    let inner: Vec<PathBuf> = charts.keys().filter(is_inner).cloned().collect();
    let inflated = kustomizations.values().flat_map(|named| &named.inflated);
    for folder in inner.iter().chain(inflated.map(|inflated| &inflated.chart)) {
        charts.remove(folder);
    }
    let is_chart = |folder: &Path| charts.contains_key(folder);
    kustomizations.retain(|folder, _| !is_chart(folder) && !is_of_chart(folder, is_chart));

    let mut roots: Vec<Root> = charts.into_values().collect();
    roots.extend(unnamed(&kustomizations, places));
    roots.retain(|root| root.kind == RootKind::Kustomization || !root.release.is_empty());
    roots.sort_by(|a, b| a.folder.cmp(&b.folder));
    roots
}

/// The root of that kind in the folder, whose links are followed.
pub(crate) fn at(folder: &Path, kind: RootKind, places: Places<'_>) -> Option<Root> {
    let file = match kind {
        RootKind::Chart => folder.join(CHART),
        RootKind::Kustomization => kind.file_in(folder)?,
    };
    let mut root = find(&[file], places).pop()?;
    root.folder = places.name_of(folder);
    Some(root)
}

/// A generated kustomization of all manifests in the folder and below. The folder's links are
/// followed, and it contains no kustomization.
pub(crate) fn generated(folder: &Path, places: Places<'_>) -> Root {
    let mut root = Root {
        folder: places.name_of(folder),
        top: places.repository.top_of(folder).to_owned(),
        laid_out: places.fetcher.top().map(Path::to_owned),
        ..Root::new(RootKind::Kustomization, folder)
    };
    let mut names = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(above) = waiting.pop() {
        let entries = fs::read_dir(&above).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let is_manifest = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
            let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            if path.is_symlink() || path.file_name().is_some_and(|file_name| file_name == GIT) {
                continue;
            } else if RootKind::Kustomization.file_in(&path).is_some() {
                root.take_in(&BTreeMap::new(), &path, places);
                names.push(name);
            } else if path.is_dir() {
                waiting.push(path);
            } else if is_manifest {
                names.push(name);
            }
        }
    }
    names.sort();
    root.generated = Some(names);
    root
}

/// Whether the path, whose links are followed, belongs to a chart: its own files, its templates,
/// and the charts in it. Other files in its folder do not, since Helm renders none of them.
pub(crate) fn is_of_chart(path: &Path, is_chart: impl Fn(&Path) -> bool) -> bool {
    path.ancestors().skip(1).any(|above| {
        let inner = path.strip_prefix(above).unwrap_or(path);
        let first = inner.iter().next().unwrap_or_default();
        let is_own = inner.iter().count() == 1
            && first.to_str().is_some_and(|name| OWN.iter().any(|own| name.contains(own)));
        is_chart(above) && (is_own || PARTS.iter().any(|part| first == *part))
    })
}

/// Words in the names of a chart's own files.
const OWN: [&str; 3] = ["Chart.", "requirements.", "values"];

/// The folders of a chart that Helm renders or reads. It applies the files in `crds` as they are.
const PARTS: [&str; 3] = ["charts", "files", "templates"];

fn chart(folder: &Path) -> Option<Root> {
    let real = real(folder)?;
    let text = text_inside(&real, &real.join(CHART), MAX_ROOT_FILE);
    // Helm decides which files are valid, for example those with duplicate keys.
    let chart: Chart =
        serde_saphyr::from_str(text.as_deref().unwrap_or_default()).unwrap_or_default();
    let release = match chart.kind.as_str() {
        "library" => String::new(),
        _ => release(&chart.name),
    };
    Some(Root {
        folder: display_name(folder),
        release,
        refused: text.err().map(|error| format!("its {CHART} cannot be read: {error}").into()),
        ..Root::new(RootKind::Chart, &real)
    })
}

/// A release name that Helm accepts: a DNS label of at most 53 characters
/// (<https://helm.sh/docs/chart_best_practices/conventions/>).
fn release(chart: &str) -> String {
    let name: String = chart
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(53)
        .collect();
    match name.trim_matches('-') {
        "" => "release".to_owned(),
        name => name.to_owned(),
    }
}

/// A kustomization with the locations of the resources that it names.
#[derive(Clone, Default)]
struct Named {
    folder: PathBuf,
    is_component: bool,
    /// Its own file and the files that it names.
    files: BTreeSet<PathBuf>,
    /// The patches among the files.
    patches: BTreeSet<PathBuf>,
    /// The patches that are written in the kustomization itself, with its name.
    inline_patches: Vec<(PathBuf, String)>,
    /// Folders of other kustomizations that it includes.
    folders: BTreeSet<PathBuf>,
    /// Folders with kustomizations that any of its fields names.
    reached: BTreeSet<PathBuf>,
    refused: Option<Reason>,
    url: Option<String>,
    fetched: Vec<Fetched>,
    inflated: Vec<Inflated>,
    /// Whether it may change fields that decide about the volumes of its objects.
    changes: bool,
    /// Whether it sets a namespace on its objects.
    moves: bool,
}

impl Named {
    /// Reads the kustomization in a folder; `None` if there is none that can be read here.
    fn read(folder: &Path, real_folder: &Path, places: Places<'_>) -> Option<Self> {
        let top = places.repository.top_of(real_folder);
        let file = RootKind::Kustomization.file_in(real_folder)?;
        let read = Kustomization::read(&text_inside(top, &file, MAX_ROOT_FILE).ok()?)?;
        let mut named = Self {
            folder: display_name(folder),
            is_component: read.is_component,
            files: BTreeSet::from([file.clone()]),
            changes: read.changes,
            moves: read.namespace.is_some(),
            ..Self::default()
        };
        for name in read.resources.iter().chain(&read.components) {
            let written = normal(&real_folder.join(name));
            match real(&written) {
                Some(path) if path.is_dir() => {
                    // The copy may lack the links in the written path.
                    if path != written && is_inside(top, &path) {
                        named.put(name, &file, path.clone());
                    }
                    named.folders.insert(path);
                }
                Some(path) => named.take(name, path, &file, top),
                None if is_remote(name) => match places.fetcher.base(name) {
                    Ok(base) => named.put(name, &file, base),
                    Err(reason) => drop(named.refused.get_or_insert(reason)),
                },
                // The program that renders the root reports the problem.
                None => {}
            }
        }
        // A patch may be written in the kustomization itself; it is not a name then.
        for patch in &read.patches {
            if let Some(path) = real(&normal(&real_folder.join(patch))) {
                named.patches.insert(path.clone());
                named.take(patch, path, &file, top);
            } else {
                let name = file.file_name().unwrap_or_default();
                named.inline_patches.push((named.folder.join(name), patch.clone()));
            }
        }
        for (number, chart) in read.charts.iter().enumerate() {
            let home = read.chart_home.as_deref().unwrap_or("charts");
            let located = real(&normal(&real_folder.join(home).join(chart.folder())))
                .filter(|found| found.join(CHART).is_file() && is_inside(top, found))
                .map_or_else(|| places.fetcher.inflated(chart), Ok);
            match located {
                Ok(found) => {
                    named.inflated.push(Inflated { file: file.clone(), number, chart: found });
                }
                Err(reason) => drop(named.refused.get_or_insert(reason)),
            }
        }
        named.reach(&read, real_folder, top);
        Some(named)
    }

    /// Adds a file that the kustomization in `file` names. Kustomize refuses files outside its
    /// folder, but Flux does not.
    fn take(&mut self, name: &str, path: PathBuf, file: &Path, top: &Path) {
        let is_outside = file.parent().is_some_and(|folder| !path.starts_with(folder));
        if is_outside && is_inside(top, &path) {
            self.put(name, file, path.clone());
        }
        self.files.insert(path);
    }

    /// Adds a resource that kustomize must find elsewhere than its name says.
    fn put(&mut self, name: &str, file: &Path, base: PathBuf) {
        if self.fetched.iter().any(|fetched| fetched.name == name) {
            return;
        }
        if self.fetched.len() == MAX_OUTSIDE {
            let most = format!("it names more than {MAX_OUTSIDE} resources outside its folder");
            self.refused.get_or_insert(most.into());
            return;
        }
        if base.is_dir() {
            self.reached.insert(base.clone());
        }
        self.fetched.push(Fetched { file: file.to_owned(), name: name.to_owned(), base });
    }

    /// Follows every name in any field, because kustomize reads more fields than are known here.
    fn reach(&mut self, read: &Kustomization, real_folder: &Path, top: &Path) {
        for text in &read.texts {
            if self.fetched.iter().any(|fetched| fetched.name == *text)
                || read.charts.iter().any(|chart| chart.repo == *text)
            {
                continue;
            }
            self.url = self.url.take().or_else(|| url_in(text).map(str::to_owned));
            if text.contains('\n') {
                continue;
            }
            let path = normal(&real_folder.join(text));
            let leads_above = Path::new(text).is_relative() && !path.starts_with(top);
            let found = real(&path);
            let is_folder = found.is_some() && RootKind::Kustomization.file_in(&path).is_some();
            let is_outside = found.as_deref().is_some_and(|found| !is_inside(top, found));
            if leads_above || is_folder && is_outside {
                let reason = format!("it names {text}, which is outside of {}", top.display());
                self.refused.get_or_insert(reason.into());
            } else if let Some(found) = found.filter(|_| !is_outside) {
                if is_folder {
                    self.reached.insert(found);
                } else if read.has_plugins && found.is_file() && self.url.is_none() {
                    self.url = match text_inside(top, &found, MAX_ROOT_FILE) {
                        Ok(content) => url_in(&content).map(str::to_owned),
                        Err(_) => Some(found.display().to_string()),
                    };
                }
            }
        }
    }
}

/// The word in the text that contains a URL.
fn url_in(text: &str) -> Option<&str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
        .find(|word| word.contains("://"))
}

/// The kustomizations that no other one names. Of those that only name each other, the first one
/// stands for all.
fn unnamed(all: &BTreeMap<PathBuf, Named>, places: Places<'_>) -> Vec<Root> {
    let included: BTreeSet<&PathBuf> = all
        .iter()
        .flat_map(|(folder, named)| named.folders.iter().filter(move |other| *other != folder))
        .collect();
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut roots = Vec::new();
    let (first, rest): (Vec<_>, Vec<_>) =
        all.iter().partition(|(path, _)| !included.contains(path));
    for (real, named) in first.into_iter().chain(rest) {
        if named.is_component || reached.contains(real) {
            continue;
        }
        let parts = reached_from(all, real, places, |kustomization| &kustomization.folders);
        let patches = parts.iter().flat_map(|(_, part)| part.patches.iter().cloned()).collect();
        let inline_patches =
            parts.iter().flat_map(|(_, part)| part.inline_patches.iter().cloned()).collect();
        let mut files = BTreeMap::new();
        for (_, part) in &parts {
            files.extend(part.files.iter().map(|file| (file.clone(), None)));
        }
        let changing = parts.iter().filter(|(_, part)| part.changes || part.moves);
        for (folder, part) in changing.rev() {
            let changeable =
                reached_from(all, folder, places, |kustomization| &kustomization.folders);
            for (inner, changed) in changeable {
                // Files in the folder of a kustomization already get its namespace when they are
                // read.
                if part.changes || inner != *folder {
                    let changed_by = |file: &PathBuf| (file.clone(), Some(part.folder.clone()));
                    files.extend(changed.files.iter().map(changed_by));
                }
            }
        }
        let mut root = Root {
            folder: named.folder.clone(),
            top: places.repository.top_of(real).to_owned(),
            files,
            patches,
            inline_patches,
            ..Root::new(RootKind::Kustomization, real)
        };
        root.take_in(all, real, places);
        roots.push(root);
        reached.extend(parts.into_iter().map(|(folder, _)| folder));
    }
    roots
}

/// The kustomization in the folder `from`, and all others that it names, directly or indirectly, in
/// the folders that `of` returns.
fn reached_from<'a>(
    all: &'a BTreeMap<PathBuf, Named>,
    from: &Path,
    places: Places<'_>,
    of: fn(&Named) -> &BTreeSet<PathBuf>,
) -> Vec<(PathBuf, Cow<'a, Named>)> {
    let mut parts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from.to_owned()];
    while let Some(folder) = waiting.pop() {
        if !seen.insert(folder.clone()) {
            continue;
        }
        let part = match all.get(&folder) {
            Some(part) => Cow::Borrowed(part),
            // The base is outside the checked folders.
            None => Cow::Owned(
                Named::read(&folder, &folder, places)
                    .unwrap_or_else(|| unreadable(&folder, places.repository)),
            ),
        };
        waiting.extend(of(&part).iter().cloned());
        parts.push((folder, part));
    }
    parts
}

/// A folder that a kustomization names, and whose own kustomization, if it has one, cannot be read
/// here.
fn unreadable(folder: &Path, repository: &Repository) -> Named {
    let refused = RootKind::Kustomization.file_in(folder).map(|file| {
        let file = repository.path_of(&file);
        format!("{file} is not a kustomization that kustomize reads").into()
    });
    Named { folder: folder.to_owned(), refused, ..Named::default() }
}

/// Whether kustomize fetches the name: a URL, `git@host:…`, or `host.name/owner/repository`.
fn is_remote(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    name.contains("://")
        || name.contains("git@")
        || name.contains("?ref=")
        || (first.contains('.') && !first.starts_with('.') && name.contains('/'))
}

fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// The folder as it is shown in messages.
fn display_name(folder: &Path) -> PathBuf {
    match folder.strip_prefix(".").unwrap_or(folder) {
        plain if plain.as_os_str().is_empty() => PathBuf::from("."),
        plain => plain.components().collect(),
    }
}

#[cfg(test)]
mod tests;
