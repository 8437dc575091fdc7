//! Renders charts and kustomizations with the programs that people use for them.
//!
//! The rendered text of a [`Root`] contains the objects that it would put into one cluster. Above
//! each object, a line `# Source: FILE` names the file from which it came.

mod bases;
pub(super) mod dependencies;
mod inflate;
mod origin;
mod progress;
pub(super) mod release;
pub(super) mod roots;
pub(super) mod variables;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher, Hash, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::files::{normal, text_inside};
use crate::program::command_line::{CommandLine, Field, Word};
use crate::program::group::is_interrupted;
use crate::program::run::{Failure, Limits, on_path, output};
use crate::program::sandbox::{Copy, Sandbox};
use crate::reason::Reason;
use crate::{Input, Paths};
use progress::Progress;
use report::Cause;
use roots::{Root, RootKind};

/// The most charts and kustomizations that one run renders.
const MAX_ROOTS: usize = 5_000;

/// The time limit for one of them.
const MAX_TIME: Duration = Duration::from_secs(60);

/// The most bytes of output of all of them.
const MAX_OUTPUT: u64 = 256 << 20;

/// The most programs that run at the same time, because each may use memory up to a limit.
const MAX_AT_ONCE: usize = 4;

/// The most bytes of a values file.
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

    /// The time limit for rendering; one chart or kustomization gets a minute of it at most
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub render_timeout: u64,

    /// Whether to say what confines the programs that render: with `--verbose`.
    #[arg(skip)]
    pub verbose: bool,
}

impl RenderOptions {
    /// The time limit for all charts and kustomizations together.
    const fn limit(&self) -> Duration {
        Duration::from_secs(self.render_timeout)
    }

    /// The time limit for one chart or kustomization.
    pub(super) fn limit_of_one(&self) -> Duration {
        self.limit().min(MAX_TIME)
    }
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

/// The programs and folders for rendering, and the state of the limits.
pub(super) struct Renderer {
    runtime: Runtime,
    helm: Option<PathBuf>,
    kustomize: Option<PathBuf>,
    kubectl: Option<PathBuf>,
    sandbox: Sandbox,
    /// The sandbox's folder, which is deleted when this is dropped.
    _scratch: TempDir,
    /// The working directory, with links followed.
    here: PathBuf,
    /// The time limits for all of them together and for one.
    limit: Duration,
    limit_of_one: Duration,
    /// The time at which all rendering ends.
    end: Instant,
    /// The number of charts and kustomizations, and of bytes, that were rendered so far.
    texts: AtomicUsize,
    bytes: AtomicU64,
    /// The command line for charts that no release renders.
    template: CommandLine,
    /// The copies of the values files in it, each with the original.
    values: Vec<(PathBuf, PathBuf)>,
    /// The results so far, by the stamps of the files and settings.
    results: RefCell<HashMap<u64, Result<String, Reason>>>,
    stamps: RandomState,
}

impl Paths<'_> {
    /// The results of `each` for all items, several at once, in the order of the items. With
    /// [`Render::Never`], nothing runs, and each result is an empty reason.
    ///
    /// # Errors
    /// There is no folder for temporary files, a values file cannot be read, or threads cannot be
    /// started.
    pub(super) fn render_all<I>(
        &self,
        items: &[I],
        wish: Render,
        each: &impl AsyncFn(&Renderer, &I) -> Result<String, Reason>,
    ) -> io::Result<Vec<Result<String, Reason>>> {
        if items.is_empty() || wish == Render::Never {
            return Ok(items.iter().map(|_| Err(Reason::from(""))).collect());
        }
        let renderer = self.renderer()?;
        let at_once = available_parallelism().map_or(1, usize::from);
        let progress = &Progress::of(items.len());
        let texts = stream::iter(items)
            .map(|item| async move { renderer.count(each(renderer, item).await?) })
            .buffered(at_once.min(MAX_AT_ONCE))
            .inspect(|_| progress.count())
            .collect();
        Ok(renderer.runtime.block_on(async {
            tokio::select! {
                rendered = texts => rendered,
                never = progress.show() => match never {},
            }
        }))
    }

    fn renderer(&self) -> io::Result<&Renderer> {
        if let Some(renderer) = self.renderer.get() {
            return Ok(renderer);
        }
        let renderer = Renderer::new(&self.input)?;
        Ok(self.renderer.get_or_init(|| renderer))
    }
}

/// The command line with which Helm renders charts that no release renders, and the copies of the
/// values files in `folder`, which it reads, each with the original.
fn template(
    input: &Input<'_>,
    folder: &Path,
) -> io::Result<(CommandLine, Vec<(PathBuf, PathBuf)>)> {
    let options = input.render;
    let folder = folder.join("values");
    fs::create_dir(&folder)?;
    let mut line = helm_template();
    let mut values = Vec::new();
    for (number, file) in options.values.iter().enumerate() {
        let copy = folder.join(format!("{number}.yaml"));
        let top = input.repository.top_for_named(file);
        text_inside(&top, file, MAX_VALUES).and_then(|text| fs::write(&copy, text)).map_err(
            |error| {
                let message = format!("--values {}: {error}", file.display());
                io::Error::new(error.kind(), message)
            },
        )?;
        line.option("--values", copy.as_path());
        values.push((copy, file.clone()));
    }
    let sets = options.set.iter().map(|pair| ("--set", Field::Setting, pair.as_str()));
    let namespace = input.namespace.map(|name| ("--namespace", Field::Namespace, name));
    for (option, field, text) in sets.chain(namespace) {
        let refused =
            |error| io::Error::new(io::ErrorKind::InvalidInput, format!("{option}: {error}"));
        line.option(option, &Word::new(field, text).map_err(refused)?);
    }
    Ok((line, values))
}

/// The start of the command line with which Helm renders a chart.
fn helm_template() -> CommandLine {
    // A schema may refer to another one by its URL or by a path.
    CommandLine::new("template --skip-schema-validation")
}

impl Renderer {
    fn new(input: &Input<'_>) -> io::Result<Self> {
        let scratch = tempfile::tempdir()?;
        let folder = fs::canonicalize(scratch.path())?;
        let (template, values) = template(input, &folder)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let limit = input.render.limit();
        let sandbox = runtime.block_on(Sandbox::new(folder))?;
        if input.render.verbose || !sandbox.is_confined() {
            (input.say)(&sandbox.in_force());
        }
        Ok(Self {
            helm: on_path("helm"),
            kustomize: on_path("kustomize"),
            kubectl: on_path("kubectl"),
            sandbox,
            runtime,
            _scratch: scratch,
            here: std::env::current_dir().and_then(fs::canonicalize)?,
            limit,
            limit_of_one: input.render.limit_of_one(),
            end: Instant::now() + limit,
            texts: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            template,
            values,
            results: RefCell::default(),
            stamps: RandomState::new(),
        })
    }

    /// Renders a chart or a kustomization without a release.
    pub(super) async fn root(&self, root: &Root) -> Result<String, Reason> {
        let rendered = match root.kind {
            RootKind::Chart => self.chart(root).await,
            RootKind::Kustomization => self.kustomization(root, Map::new()).await,
        };
        rendered.map_err(|reason| reason.in_folder(root.kind, &root.folder))
    }

    /// Counts the root and copies what is read for it, or gives the reason why rendering it is not
    /// attempted.
    fn copy(&self, root: &Root) -> Result<Copy, Reason> {
        if let Some(reason) = &root.refused {
            return Err(reason.clone());
        }
        if let Some(url) = root.url.as_ref().filter(|_| !self.sandbox.is_offline()) {
            return Err(Reason::of(Cause::Files, &format!("it names {url}")));
        }
        if self.texts.fetch_add(1, Ordering::Relaxed) >= MAX_ROOTS {
            let most = format!("one run renders {MAX_ROOTS} charts and kustomizations at most");
            return Err(most.into());
        }
        if Instant::now() >= self.end {
            return Err(self.out_of_time());
        }
        let fetched = root.laid_out.as_deref();
        let copy = Copy::of(&root.folders, &root.top, fetched, &self.sandbox.folder)?;
        bases::write(root, &copy)?;
        for (copied, original) in &self.values {
            copy.set_original(copied.clone(), original);
        }
        for (chart, name) in &root.additions {
            copy.add(chart, &root.real.join("charts"), name)?;
        }
        Ok(copy)
    }

    /// The text, unless the output of all of them becomes too large.
    fn count(&self, text: String) -> Result<String, Reason> {
        let bytes = text.len() as u64;
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_OUTPUT {
            let limit = MAX_OUTPUT >> 20;
            return Err(format!("all that is rendered is more than {limit} MiB").into());
        }
        Ok(text)
    }

    async fn chart(&self, root: &Root) -> Result<String, Reason> {
        let copy = self.copy(root)?;
        let chart = copy.of_original(&root.real);
        let release = Word::new(Field::ReleaseName, &root.release)?;
        let line = self.template.clone().word(&release).word(chart.as_path());
        self.once((copy.stamp(), &root.real), async {
            let text = self.helm(&line, &copy).await?;
            Ok(origin::of_helm(&text, &root.folder))
        })
        .await
    }

    /// The result of rendering for this stamp, which is rendered only once.
    async fn once(
        &self,
        stamp: impl Hash,
        rendering: impl Future<Output = Result<String, Reason>>,
    ) -> Result<String, Reason> {
        let stamp = self.stamps.hash_one(stamp);
        let known = self.results.borrow().get(&stamp).cloned();
        if let Some(known) = known {
            return known;
        }
        let result = rendering.await;
        self.results.borrow_mut().insert(stamp, result.clone());
        result
    }

    async fn helm(&self, line: &CommandLine, copy: &Copy) -> Result<String, Reason> {
        let Some(helm) = &self.helm else {
            let text = "there is no helm on the PATH";
            return Err(Reason::of(Cause::NoProgram("helm"), text));
        };
        self.output(helm, line, copy).await
    }

    /// Renders a kustomization. `fields` apply to all its objects.
    async fn kustomization(
        &self,
        root: &Root,
        fields: Map<String, Value>,
    ) -> Result<String, Reason> {
        let copy = self.copy(root)?;
        let stamp = (copy.stamp(), &root.real, fields.clone());
        self.once(stamp, self.kustomized(root, fields, &copy)).await
    }

    async fn kustomized(
        &self,
        root: &Root,
        mut fields: Map<String, Value>,
        copy: &Copy,
    ) -> Result<String, Reason> {
        self.inflate(root, copy).await?;
        // A kustomization around the root requests the annotations with the origins.
        let around = copy.folder();
        let copied = copy.of_original(&root.real);
        let inner = copied
            .strip_prefix(around)
            .ok()
            .and_then(Path::to_str)
            .ok_or("its path is not UTF-8 text")?;
        // The path of a component that a release adds is relative to the root.
        let components = fields.get_mut("components").and_then(Value::as_array_mut);
        for name in components.into_iter().flatten() {
            let path = Path::new(inner).join(name.as_str().unwrap_or_default());
            *name = normal(&path).to_string_lossy().into();
        }
        let resources: Vec<String> = match &root.generated {
            Some(names) => names
                .iter()
                .map(|name| Path::new(inner).join(name).to_string_lossy().into_owned())
                .collect(),
            None => vec![inner.to_owned()],
        };
        fields.insert("resources".to_owned(), json!(resources));
        fields.insert("buildMetadata".to_owned(), json!(["originAnnotations"]));
        let text = self.kustomize(around, fields, copy).await?;
        let file_of = |origin: &str| copy.original(normal(&around.join(origin)));
        let fetched = root.laid_out.as_deref();
        Ok(origin::of_kustomize(&text, file_of, &self.here, fetched))
    }

    /// Builds a kustomization with these fields, which is written into the folder. It starts no
    /// Helm: charts are rendered by [`Self::inflate`].
    async fn kustomize(
        &self,
        folder: &Path,
        fields: Map<String, Value>,
        copy: &Copy,
    ) -> Result<String, Reason> {
        let kustomization = Value::Object(fields).to_string();
        fs::write(folder.join("kustomization.yaml"), kustomization).map_err(Failure::Copy)?;
        let kustomize = self.kustomize.iter().map(|program| (program, "build"));
        // kubectl contains a different version of kustomize.
        let kubectl = self.kubectl.iter().map(|program| (program, "kustomize"));
        let mut failed = None;
        for (program, command) in kustomize.chain(kubectl) {
            let line = CommandLine::new(command).word(folder);
            match self.output(program, &line, copy).await {
                Ok(text) => return Ok(text),
                Err(reason) => drop(failed.get_or_insert(reason)),
            }
        }
        Err(failed.unwrap_or_else(|| {
            let text = "there is neither kustomize nor kubectl on the PATH";
            Reason::of(Cause::NoProgram("kustomize"), text)
        }))
    }

    async fn output(
        &self,
        executable: &Path,
        line: &CommandLine,
        copy: &Copy,
    ) -> Result<String, Reason> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.out_of_time());
        }
        if is_interrupted() {
            return Err("the run was interrupted".into());
        }
        let name = executable.file_stem().unwrap_or_default().to_string_lossy();
        let limits = Limits { time: self.limit_of_one.min(left), file: MAX_OUTPUT };
        let command = self.sandbox.command(executable, line, copy.folder(), limits);
        output(command, &name, limits).await.map_err(|failure| match failure {
            _ if is_interrupted() => "the run was interrupted".into(),
            Failure::Refused { program, complaint } => {
                let complaint = copy.with_originals(&complaint);
                without_dependency(&complaint)
                    .unwrap_or_else(|| Failure::Refused { program, complaint }.into())
            }
            failure => failure.into(),
        })
    }

    fn out_of_time(&self) -> Reason {
        let all = self.limit.as_secs();
        format!("all rendering together may take {all} s (--render-timeout)").into()
    }
}

/// The reason in Helm's complaint about missing dependencies; `None` for other complaints.
fn without_dependency(complaint: &str) -> Option<Reason> {
    let (_, listed) = complaint.split_once("missing in charts/ directory: ")?;
    let mut names = Vec::new();
    for name in listed.lines().next()?.split(", ") {
        // A chart may need another one under several names.
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let missing = names.join(", ");
    let text = format!("it depends on {missing}, which its charts folder does not hold");
    Some(Reason::of(Cause::Dependencies, &text))
}

#[cfg(test)]
mod tests {
    use super::without_dependency;

    #[test]
    fn a_dependency_is_named_once() {
        let complaint =
            "found in Chart.yaml, but missing in charts/ directory: common, common, redis\n\n";
        let reason = without_dependency(complaint).unwrap().text;
        assert!(reason.starts_with("it depends on common, redis, which"), "{reason}");
        assert_eq!(without_dependency("no such chart"), None);
    }
}
