//! Renders what is meant to be rendered: charts and kustomizations, by the
//! programs that people render them with.
//!
//! A rendered text is what its [`Root`] would put into one cluster. Above each
//! object, a line `# Source: FILE` names the file it came from, and
//! [`origin::place`] finds the line in that file.

mod group;
pub(super) mod origin;
mod program;
pub(super) mod roots;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt};

use crate::report::{Unopened, Unread};
use group::Groups;
use manifest::source::Source;
use origin::Naming;
use program::{nothing_is_fetched, on_path, output};
use roots::{Root, RootKind};

/// How charts and kustomizations are rendered.
#[derive(Args, Clone, Debug)]
pub struct RenderOptions {
    /// Render charts with `helm template` and kustomizations with `kustomize build` or `kubectl
    /// kustomize`; nothing is fetched
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Render::Auto)]
    pub render: Render,

    /// Render charts with these values too; may be repeated
    #[arg(long, value_name = "FILE")]
    pub values: Vec<PathBuf>,

    /// Render charts with this value; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// How many seconds the rendering of one chart or kustomization may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub render_timeout: u64,
}

/// Whether charts and kustomizations are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Render {
    /// With the programs that are there; what cannot be rendered is told and does not fail
    Auto,
    /// Not at all; how many there are is told
    Never,
    /// What cannot be rendered is an error
    Require,
}

/// What came of a root.
struct Outcome {
    root: Root,
    /// The rendered text, or why there is none: the end of a sentence.
    text: Result<String, String>,
}

/// What there is to read when charts and kustomizations are rendered.
pub(super) struct Opened {
    /// Files that are nobody's part, then the rendered texts.
    pub(super) sources: Vec<Source>,
    /// Files, without links, that are parts of what was rendered.
    pub(super) parts: HashSet<PathBuf>,
    /// Where the rendered texts are from: the last of the sources, in the same order.
    pub(super) roots: Vec<Root>,
    /// What was not rendered though it was tried.
    pub(super) unopened: Vec<Unopened>,
    /// What was to be rendered and was not.
    pub(super) unread: Vec<Unread>,
    /// How many roots were not rendered, by kind.
    pub(super) counts: BTreeMap<String, usize>,
    /// The files, without links, of kustomizations that were not rendered.
    pub(super) unrendered: HashMap<PathBuf, Unrendered>,
}

/// What is known of a file that only kustomizations take which were not rendered.
#[derive(Default)]
pub(super) struct Unrendered {
    /// The numbers of those.
    pub(super) roots: Vec<usize>,
    /// The folder of one that may change what is in the file.
    pub(super) changed_by: Option<PathBuf>,
}

/// What becomes of kustomizations that can be rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kustomizations {
    /// What they are rendered to is read.
    Opened,
    /// Their files are read, so that they can be edited. What cannot be rendered is
    /// known, and told only where the others are opened.
    InPlace,
}

/// Renders what is to be rendered among `sources`. The files of a chart are never
/// read as manifests, those of a kustomization where it is not rendered, or `InPlace`.
///
/// # Errors
/// See [`render`].
pub(super) fn open(
    sources: Vec<Source>,
    kustomizations: Kustomizations,
    namespace: Option<&str>,
    options: &RenderOptions,
) -> io::Result<Opened> {
    let files: Vec<PathBuf> = sources
        .iter()
        .filter_map(|source| source.path().map(Path::to_owned))
        .collect();
    let wanted = roots::find(&files);
    let mut opened = Opened {
        sources: Vec::new(),
        parts: HashSet::new(),
        roots: Vec::new(),
        unopened: Vec::new(),
        unread: Vec::new(),
        counts: BTreeMap::new(),
        unrendered: HashMap::new(),
    };
    let mut held: Vec<Root> = Vec::new();
    let (mut rendered_in_place, mut unrendered) = (Vec::new(), Vec::new());
    let mut texts = Vec::new();
    let outcomes = if options.render == Render::Never {
        let reason = || Err(String::new());
        wanted
            .into_iter()
            .map(|root| Outcome {
                root,
                text: reason(),
            })
            .collect()
    } else {
        render(wanted, namespace, options)?
    };
    for Outcome { root, text } in outcomes {
        let folder = root.folder.to_string_lossy().into_owned();
        let is_kustomization = root.kind == RootKind::Kustomization;
        if is_kustomization && kustomizations == Kustomizations::InPlace {
            match text {
                Ok(_) => rendered_in_place.push(root),
                Err(_) => unrendered.push(root),
            }
            continue;
        }
        match text {
            Ok(text) => {
                texts.push(Source::rendered(&folder, text));
                opened.roots.push(root.clone());
                held.push(root);
                continue;
            }
            Err(_) if options.render == Render::Never => {}
            Err(reason) if options.render == Render::Require => opened.unread.push(Unread {
                message: format!("This {} cannot be rendered: {reason}.", root.kind.name()),
                path: Some(folder.clone()),
                file: folder,
                at: None,
            }),
            Err(reason) => opened.unopened.push(Unopened {
                what: root.kind.name(),
                path: folder,
                reason,
            }),
        }
        *opened
            .counts
            .entry(root.kind.name().to_owned())
            .or_default() += 1;
        if is_kustomization {
            unrendered.push(root);
        } else {
            held.push(root);
        }
    }
    for (number, root) in unrendered.into_iter().enumerate() {
        for (file, changed_by) in root.files {
            if rendered_in_place.iter().all(|root| !root.holds(&file)) {
                let known: &mut Unrendered = opened.unrendered.entry(file).or_default();
                known.roots.push(number);
                known.changed_by = known.changed_by.take().or(changed_by);
            }
        }
    }
    let is_free = |source: &Source| {
        let real = source.real_path();
        !real.is_some_and(|path| held.iter().any(|root| root.holds(path)))
    };
    let parts: Vec<Source>;
    (opened.sources, parts) = sources.into_iter().partition(is_free);
    let parts = parts.iter().filter_map(|source| source.real_path());
    opened.parts = parts.map(Path::to_owned).collect();
    opened.sources.extend(texts);
    Ok(opened)
}

/// The programs and folders that rendering takes.
struct Tools {
    helm: Option<PathBuf>,
    kustomize: Option<PathBuf>,
    kubectl: Option<PathBuf>,
    /// A folder of our own, without links.
    folder: PathBuf,
    naming: Naming,
    groups: Groups,
    limit: Duration,
    /// The values for charts, as arguments.
    values: Vec<OsString>,
}

/// Renders the roots, several at once. The order stays.
///
/// # Errors
/// There is no folder for temporary files, a file of values cannot be read, or
/// threads cannot be started.
fn render(
    roots: Vec<Root>,
    namespace: Option<&str>,
    options: &RenderOptions,
) -> io::Result<Vec<Outcome>> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let scratch = tempfile::tempdir()?;
    let mut values = Vec::new();
    for file in &options.values {
        let real = fs::canonicalize(file).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("--values {}: {error}", file.display()),
            )
        })?;
        values.push("--values".into());
        values.push(real.into());
    }
    for pair in &options.set {
        values.push(format!("--set={pair}").into());
    }
    if let Some(namespace) = namespace {
        values.push(format!("--namespace={namespace}").into());
    }
    let tools = Tools {
        helm: on_path("helm"),
        kustomize: on_path("kustomize"),
        kubectl: on_path("kubectl"),
        folder: fs::canonicalize(scratch.path())?,
        naming: Naming {
            here: std::env::current_dir().and_then(fs::canonicalize)?,
        },
        groups: Groups::watched(),
        limit: Duration::from_secs(options.render_timeout),
        values,
    };
    fs::create_dir(tools.empty())?;
    let at_once = available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcomes = runtime.block_on(
        stream::iter(roots.into_iter().enumerate())
            .map(|(number, root)| tools.render(number, root))
            .buffered(at_once)
            .collect(),
    );
    Ok(outcomes)
}

impl Tools {
    fn empty(&self) -> PathBuf {
        self.folder.join("empty")
    }

    async fn render(&self, number: usize, root: Root) -> Outcome {
        let text = match (&root.remote, root.kind) {
            (Some(remote), _) => Err(nothing_is_fetched(remote)),
            (None, RootKind::Chart) => self.chart(&root).await,
            (None, RootKind::Kustomization) => self.kustomization(number, &root).await,
        };
        Outcome { root, text }
    }

    async fn chart(&self, root: &Root) -> Result<String, String> {
        let Some(helm) = &self.helm else {
            return Err("there is no helm on the PATH".to_owned());
        };
        let mut arguments: Vec<OsString> = vec![
            "template".into(),
            root.release.clone().into(),
            root.real.clone().into(),
        ];
        arguments.extend(self.values.iter().cloned());
        let text = self
            .output(helm, &arguments)
            .await
            .map_err(|reason| without_dependency(&reason).unwrap_or(reason))?;
        Ok(origin::of_helm(&text, &root.folder))
    }

    async fn kustomization(&self, number: usize, root: &Root) -> Result<String, String> {
        let (program, command) = match (&self.kustomize, &self.kubectl) {
            (Some(kustomize), _) => (kustomize, "build"),
            (None, Some(kubectl)) => (kubectl, "kustomize"),
            (None, None) => {
                return Err("there is neither kustomize nor kubectl on the PATH".to_owned());
            }
        };
        // A kustomization around the root asks for the origins; the root itself is
        // the user's, and nothing is written there.
        let around = self.folder.join(number.to_string());
        let folder = match relative(&around, &root.real) {
            Some(path) if !around.starts_with(&root.real) => {
                let kustomization = serde_json::json!({
                    "resources": [path],
                    "buildMetadata": ["originAnnotations"],
                });
                fs::create_dir(&around)
                    .and_then(|()| {
                        fs::write(around.join("kustomization.yaml"), kustomization.to_string())
                    })
                    .map_err(|error| format!("no temporary file can be written: {error}"))?;
                &around
            }
            _ => &root.real,
        };
        let text = self
            .output(program, &[command.into(), folder.into()])
            .await?;
        Ok(origin::of_kustomize(&text, folder, &self.naming))
    }

    async fn output(&self, program: &Path, arguments: &[OsString]) -> Result<String, String> {
        let groups = &self.groups;
        output(program, arguments, &self.empty(), groups, self.limit)
            .await
            .map_err(|failure| failure.to_string())
    }
}

/// What Helm's complaint about dependencies comes to.
fn without_dependency(complaint: &str) -> Option<String> {
    let (_, missing) = complaint.split_once("missing in charts/ directory: ")?;
    let mut names = Vec::new();
    for name in missing.split(", ") {
        // A chart may need another one under several names.
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let missing = names.join(", ");
    Some(format!(
        "it depends on {missing}, which its charts folder does not hold; run `helm dependency build` first"
    ))
}

/// The way from one folder to another, both absolute and without links; `None`
/// where there is none, as between two drives, or none in UTF-8.
fn relative(from: &Path, to: &Path) -> Option<String> {
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    if shared == 0 {
        return None;
    }
    let mut parts = vec![".."; from.components().count() - shared];
    for part in to.components().skip(shared) {
        parts.push(part.as_os_str().to_str()?);
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{relative, without_dependency};

    #[test]
    fn a_dependency_is_named_once() {
        let complaint =
            "found in Chart.yaml, but missing in charts/ directory: common, common, redis";
        let told = without_dependency(complaint).unwrap();
        assert!(
            told.starts_with("it depends on common, redis, which"),
            "{told}"
        );
        assert_eq!(without_dependency("no such chart"), None);
    }

    #[test]
    fn the_way_between_folders_is_relative() {
        let table = [
            ("/tmp/x/0", "/work/base", "../../../work/base"),
            ("/tmp/x/0", "/tmp/y", "../../y"),
            ("/tmp/x", "/tmp/x/in", "in"),
        ];
        for (from, to, way) in table {
            let found = relative(Path::new(from), Path::new(to));
            assert_eq!(found.as_deref(), Some(way));
        }
    }
}
