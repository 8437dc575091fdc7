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
mod sandbox;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt};

use super::files::text_inside;
use super::repository::Repository;
use group::Groups;
use origin::Naming;
use program::{Failure, nothing_is_fetched, on_path, output};
use roots::{Root, RootKind};
use sandbox::{Copy, Sandbox};

/// The most charts and kustomizations that one run renders.
const MAX_ROOTS: usize = 5_000;

/// All of them together may take this many times what one may.
const TIMES_IN_ALL: u32 = 10;

/// The most bytes that all of them may be rendered to.
const MAX_OUTPUT: u64 = 256 << 20;

/// The most programs at once, as each may take memory up to a limit.
const MAX_AT_ONCE: usize = 4;

/// The most bytes of a file of values.
const MAX_VALUES: u64 = 4 << 20;

/// How charts and kustomizations are rendered.
#[derive(Args, Clone, Debug)]
pub struct RenderOptions {
    /// Render charts and kustomizations, with the helm and kustomize (or kubectl) on the PATH
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Render::Auto)]
    pub render: Render,

    /// A values file for charts; may be repeated
    #[arg(long, value_name = "FILE")]
    pub values: Vec<PathBuf>,

    /// A value for charts; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// The time limit for one chart or kustomization; all of them may take ten times that
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub render_timeout: u64,
}

/// Whether charts and kustomizations are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Render {
    /// Render what can be rendered, and report the rest
    Auto,
    /// Render nothing, and count what there is
    Never,
    /// Fail if anything cannot be rendered
    Require,
}

/// What came of a root.
pub(super) struct Outcome {
    pub(super) root: Root,
    /// The rendered text, or why there is none: the end of a sentence.
    pub(super) text: Result<String, String>,
}

/// The programs and folders that rendering takes, and what is left of the limits.
struct Renderer {
    helm: Option<PathBuf>,
    kustomize: Option<PathBuf>,
    kubectl: Option<PathBuf>,
    sandbox: Sandbox,
    naming: Naming,
    groups: Groups,
    limit: Duration,
    /// When all rendering ends.
    end: Instant,
    /// The bytes that were rendered so far.
    rendered: AtomicU64,
    /// The values for charts, as arguments.
    values: Vec<OsString>,
}

/// Renders the roots, several at once. The order stays.
///
/// # Errors
/// There is no folder for temporary files, a file of values cannot be read, or
/// threads cannot be started.
pub(super) fn render(
    roots: Vec<Root>,
    namespace: Option<&str>,
    options: &RenderOptions,
    repository: &Repository,
) -> io::Result<Vec<Outcome>> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let scratch = tempfile::tempdir()?;
    let folder = fs::canonicalize(scratch.path())?;
    let mut values = values(options, &folder, repository)?;
    if let Some(namespace) = namespace {
        values.push(format!("--namespace={namespace}").into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let limit = Duration::from_secs(options.render_timeout);
    let renderer = Renderer {
        helm: on_path("helm"),
        kustomize: on_path("kustomize"),
        kubectl: on_path("kubectl"),
        sandbox: runtime.block_on(Sandbox::new(folder))?,
        naming: Naming {
            here: std::env::current_dir().and_then(fs::canonicalize)?,
        },
        groups: Groups::watched(),
        limit,
        end: Instant::now() + limit.saturating_mul(TIMES_IN_ALL),
        rendered: AtomicU64::new(0),
        values,
    };
    let at_once = available_parallelism().map_or(1, usize::from);
    let outcomes = runtime.block_on(
        stream::iter(roots.into_iter().enumerate())
            .map(|(number, root)| renderer.render(number, root))
            .buffered(at_once.min(MAX_AT_ONCE))
            .collect(),
    );
    Ok(outcomes)
}

/// The values for charts as arguments of Helm, which reads copies of the files in `folder`.
fn values(
    options: &RenderOptions,
    folder: &Path,
    repository: &Repository,
) -> io::Result<Vec<OsString>> {
    let mut values = Vec::new();
    for (number, file) in options.values.iter().enumerate() {
        let copy = folder.join(format!("values-{number}.yaml"));
        let top = repository.top_for_named(file);
        text_inside(&top, file, MAX_VALUES)
            .and_then(|text| fs::write(&copy, text))
            .map_err(|error| {
                let message = format!("--values {}: {error}", file.display());
                io::Error::new(error.kind(), message)
            })?;
        values.push("--values".into());
        values.push(copy.into());
    }
    values.extend(
        options
            .set
            .iter()
            .map(|pair| format!("--set={pair}").into()),
    );
    Ok(values)
}

impl Renderer {
    async fn render(&self, number: usize, root: Root) -> Outcome {
        let text = match self.refusal(number, &root) {
            Some(reason) => Err(reason),
            None => match root.kind {
                RootKind::Chart => self.chart(&root).await,
                RootKind::Kustomization => self.kustomization(&root).await,
            },
        };
        Outcome {
            text: text.and_then(|text| self.count(text)),
            root,
        }
    }

    /// Why it is not even tried to render the root.
    fn refusal(&self, number: usize, root: &Root) -> Option<String> {
        let url = || match &root.url {
            Some(url) if !self.sandbox.is_offline() => {
                Some(nothing_is_fetched(&format!("it names {url}")))
            }
            _ => None,
        };
        let too_many = || {
            (number >= MAX_ROOTS)
                .then(|| format!("one run renders {MAX_ROOTS} charts and kustomizations at most"))
        };
        root.refused.clone().or_else(url).or_else(too_many)
    }

    /// The text, unless there is too much of it together with all the others.
    fn count(&self, text: String) -> Result<String, String> {
        let bytes = text.len() as u64;
        if self.rendered.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_OUTPUT {
            let limit = MAX_OUTPUT >> 20;
            return Err(format!("all that is rendered is more than {limit} MiB"));
        }
        Ok(text)
    }

    async fn chart(&self, root: &Root) -> Result<String, String> {
        let Some(helm) = &self.helm else {
            return Err("there is no helm on the PATH".to_owned());
        };
        let copy = self.copy(root)?;
        let mut arguments: Vec<OsString> = vec![
            "template".into(),
            root.release.clone().into(),
            copy.of_original(&root.real).into(),
            // A schema may refer to another one by its URL or by a path.
            "--skip-schema-validation".into(),
        ];
        arguments.extend(self.values.iter().cloned());
        let text = self
            .output(helm, &arguments, &copy)
            .await
            .map_err(|reason| without_dependency(&reason).unwrap_or(reason))?;
        Ok(origin::of_helm(&text, &root.folder))
    }

    async fn kustomization(&self, root: &Root) -> Result<String, String> {
        let kustomize = self.kustomize.iter().map(|program| (program, "build"));
        let kubectl = self.kubectl.iter().map(|program| (program, "kustomize"));
        let mut programs = kustomize.chain(kubectl);
        let Some(first) = programs.next() else {
            return Err("there is neither kustomize nor kubectl on the PATH".to_owned());
        };
        let copy = self.copy(root)?;
        // A kustomization around the root asks for the origins.
        let around = copy.folder();
        let inner = copy.of_original(&root.real);
        let inner = inner.strip_prefix(around).ok().and_then(Path::to_str);
        let Some(inner) = inner else {
            return Err("its path is not UTF-8 text".to_owned());
        };
        let kustomization = serde_json::json!({
            "resources": [inner],
            "buildMetadata": ["originAnnotations"],
        });
        fs::write(around.join("kustomization.yaml"), kustomization.to_string())
            .map_err(|error| Failure::Copy(error).to_string())?;
        let build = async |(program, command): (&PathBuf, &str)| {
            let arguments = [command.into(), around.into()];
            self.output(program, &arguments, &copy).await
        };
        let mut text = build(first).await;
        // kubectl has a kustomize of its own, of another version.
        if let (Err(_), Some(second)) = (&text, programs.next())
            && let Ok(built) = build(second).await
        {
            text = Ok(built);
        }
        let text = text?;
        let file_of = |origin: &str| copy.original(&super::files::normal(&around.join(origin)));
        Ok(origin::of_kustomize(&text, file_of, &self.naming))
    }

    fn copy(&self, root: &Root) -> Result<Copy, String> {
        if Instant::now() >= self.end {
            return Err(self.out_of_time());
        }
        Copy::of(&root.folders, &root.top, &self.sandbox.folder).map_err(|it| it.to_string())
    }

    async fn output(
        &self,
        program: &Path,
        arguments: &[OsString],
        copy: &Copy,
    ) -> Result<String, String> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.out_of_time());
        }
        let limit = self.limit.min(left);
        output(&self.sandbox, program, arguments, &self.groups, limit)
            .await
            .map_err(|failure| copy.with_originals(&failure.to_string()))
    }

    fn out_of_time(&self) -> String {
        let all = self.limit.saturating_mul(TIMES_IN_ALL).as_secs();
        format!("all rendering together may take {all} s")
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

#[cfg(test)]
mod tests {
    use super::without_dependency;

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
}
