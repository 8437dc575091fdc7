//! Renders the charts, kustomizations and manifests of releases.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::roots::{Root, RootKind};
use super::variables::Variables;
use super::{Renderer, helm_template, origin};
use crate::files::text_inside;
use crate::program::command_line::{CommandLine, Field, Word};
use crate::program::run::Failure;
use crate::program::sandbox::Copy;
use crate::reason::Reason;
use manifest::error::MAX_BYTES;

/// A rendering job for a release, with all its files available.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) files: Files,
    pub(crate) settings: Settings,
}

/// The settings of a release for its chart or kustomization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    /// The name of the release.
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    /// The values that replace those in the chart, which is then in a folder.
    pub(crate) own_values: Option<Value>,
    /// Mappings of values. Each overrides the ones before it.
    pub(crate) values: Vec<Value>,
    /// Single values, which override all mappings.
    pub(crate) sets: Vec<Setting>,
    /// The fields of kustomizations that are applied to the rendered objects.
    pub(crate) post_renderers: Vec<Map<String, Value>>,
    /// The fields of the kustomization that is put around that of the release.
    pub(crate) fields: Map<String, Value>,
    /// The variables that are substituted in the rendered kustomization.
    pub(crate) variables: Variables,
}

/// A single value that a release sets, as `name=value`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Setting {
    /// `--set`: a value that looks like a number is one.
    Typed(String),
    /// `--set-string`.
    Text(String),
}

/// The location of a chart or of manifests on this machine.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    /// The folder of a chart or of a kustomization.
    Root(Box<Root>),
    /// A packed chart.
    Archive(PathBuf),
    /// The manifests of a fetched folder, and whether those in its subfolders are included.
    Manifests(PathBuf, bool),
}

impl Renderer {
    /// Renders the job of a release.
    pub(crate) async fn job(&self, job: &Job) -> Result<String, Reason> {
        let rendered = self.release(job).await;
        match &job.files {
            Files::Root(root) => {
                rendered.map_err(|reason| reason.in_folder(root.kind, &root.folder))
            }
            Files::Archive(_) | Files::Manifests(..) => rendered,
        }
    }

    async fn release(&self, Job { files, settings }: &Job) -> Result<String, Reason> {
        match files {
            Files::Manifests(folder, recursive) => return manifests(folder, *recursive),
            Files::Root(root) if root.kind == RootKind::Kustomization => {
                let text = self.kustomization(root, settings.fields.clone()).await?;
                return settings.variables.substituted(text);
            }
            Files::Root(_) | Files::Archive(_) => {}
        }
        let (copy, chart) = self.copy_of_chart(files)?;
        let chart_folder = match files {
            Files::Root(root) => Some(root.folder.as_path()),
            Files::Archive(_) | Files::Manifests(..) => None,
        };
        let stamp = (copy.stamp(), chart_folder, settings);
        self.once(stamp, self.release_of_chart(&chart, chart_folder, settings, &copy)).await
    }

    /// The values in the chart of a release, as YAML text.
    pub(crate) async fn values_in_chart(&self, job: &Job) -> Result<String, Reason> {
        let (copy, chart) = self.copy_of_chart(&job.files)?;
        let inner = chart.strip_prefix(copy.folder()).unwrap_or(&chart);
        let stamp = (copy.stamp(), inner, "values");
        let line = CommandLine::new("show values").word(chart.as_path());
        self.once(stamp, self.helm(&line, &copy)).await
    }

    /// A copy of the chart of a release, and its path in the copy.
    fn copy_of_chart(&self, files: &Files) -> Result<(Copy, PathBuf), Reason> {
        match files {
            Files::Root(root) => {
                let copy = self.copy(root)?;
                let chart = copy.of_original(&root.real);
                Ok((copy, chart))
            }
            Files::Archive(file) | Files::Manifests(file, _) => {
                let copy = Copy::empty(&self.sandbox.folder)?;
                let chart = copy.folder().join("chart.tgz");
                copy.copy_file(file, &chart)?;
                Ok((copy, chart))
            }
        }
    }

    /// Renders the copied chart of a release. If it is not packed,
    /// `chart_folder` is its own folder.
    async fn release_of_chart(
        &self,
        chart: &Path,
        chart_folder: Option<&Path>,
        settings: &Settings,
        copy: &Copy,
    ) -> Result<String, Reason> {
        if let Some(values) = &settings.own_values {
            let file = chart.join("values.yaml");
            // It may be a link, which must not be written through.
            let _ = fs::remove_file(&file);
            File::create_new(file)
                .and_then(|mut new| new.write_all(values.to_string().as_bytes()))
                .map_err(Failure::Copy)?;
        }
        let line = template(settings, copy.folder())?.word(chart);
        let mut text = self.helm(&line, copy).await?;
        if let Some(folder) = chart_folder {
            text = origin::of_helm(&text, folder);
        }
        for (number, fields) in settings.post_renderers.iter().enumerate() {
            let folder = copy.folder().join(format!("post-renderer-{number}"));
            fs::create_dir(&folder)
                .and_then(|()| fs::write(folder.join(RENDERED), &text))
                .map_err(Failure::Copy)?;
            let mut fields = fields.clone();
            fields.insert("resources".to_owned(), json!([RENDERED]));
            text = self.kustomize(&folder, fields, copy).await?;
        }
        Ok(text)
    }
}

/// The manifests of the folder, one after the other. Links are not followed.
fn manifests(top: &Path, recursive: bool) -> Result<String, Reason> {
    let mut text = String::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(folder) = waiting.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| error.to_string())?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| !path.is_symlink()) {
            let end = path.extension().and_then(OsStr::to_str);
            if path.is_dir() && recursive {
                waiting.push(path);
            } else if path.is_file() && matches!(end, Some("yaml" | "yml" | "json")) {
                text +=
                    &text_inside(&folder, &path, MAX_BYTES).map_err(|error| error.to_string())?;
                text += "\n---\n";
            }
        }
    }
    Ok(text)
}

/// The input file of a post-renderer.
const RENDERED: &str = "rendered.yaml";

/// The command line with which Helm renders a chart for the release; the caller adds the chart. The
/// values are written to files in `folder`.
fn template(settings: &Settings, folder: &Path) -> Result<CommandLine, Reason> {
    let mut line = helm_template();
    if let Some(namespace) = &settings.namespace {
        line.option("--namespace", &Word::new(Field::Namespace, namespace)?);
    }
    for (number, values) in settings.values.iter().enumerate() {
        let file = folder.join(format!("values-{number}.yaml"));
        fs::write(&file, values.to_string()).map_err(Failure::Copy)?;
        line.option("--values", file.as_path());
    }
    for setting in &settings.sets {
        let (option, pair) = match setting {
            Setting::Typed(pair) => ("--set", pair),
            Setting::Text(pair) => ("--set-string", pair),
        };
        line.option(option, &Word::new(Field::Setting, pair)?);
    }
    Ok(line.word(&Word::new(Field::ReleaseName, &settings.name)?))
}
