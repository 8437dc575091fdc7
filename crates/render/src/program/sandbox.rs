//! The place in which charts and kustomizations are rendered: a copy, without any data of the user
//! and, if the machine supports it, without a network, other processes and other files.
//!
//! Charts and kustomizations may come from a stranger's pull request, and text that a template
//! reads is printed in the report. So a program gets a copy of the folders that it needs, without
//! links that lead out of them, and an environment without the secrets of a pipeline. The program
//! `unshare` gives it its own namespaces. [`super::confine`] allows it only to read the copy and
//! its own libraries, to write temporary files, and to start nothing.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::command_line::CommandLine;
use super::confine::IN_FORCE;
use super::executable::others;
use super::run::{Failure, Limits, MAX_MEMORY, NOWHERE, on_path};
use crate::files::{GIT, is_inside};

/// The most bytes and entries that the copy for one root may have.
const MAX_COPY: u64 = 64 << 20;
const MAX_ENTRIES: usize = 20_000;

/// The time limit for testing the restrictions of the machine.
const PROBE: Duration = Duration::from_secs(10);

/// The arguments of `unshare`, with a description.
type Namespaces = (&'static str, &'static str);

/// The namespaces, the strictest first: an empty network, and separate processes and mounts.
const NAMESPACES: [Namespaces; 3] = [
    (
        "--user --map-root-user --net --mount --pid --fork --kill-child --mount-proc",
        "user, network, mount and process namespaces",
    ),
    (
        "--user --map-root-user --net --mount --pid --fork --kill-child",
        "user, network, mount and process namespaces with the /proc of this machine",
    ),
    ("--user --map-root-user --net", "user and network namespaces"),
];

/// The files that programs need besides their own.
const LIBRARIES: [&str; 9] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/etc/ld.so.cache",
    "/usr/share/zoneinfo",
    "/dev/urandom",
];

/// The restrictions under which programs are started.
pub(crate) struct Sandbox {
    /// The program `unshare`, and the row of [`NAMESPACES`] that works.
    unshare: Option<(PathBuf, Namespaces)>,
    /// This program, if it can confine others.
    confine: Option<PathBuf>,
    /// A temporary folder of this program, with links followed.
    pub(crate) folder: PathBuf,
}

impl Sandbox {
    pub(crate) async fn new(folder: PathBuf) -> io::Result<Self> {
        let this = std::env::current_exe().ok();
        let mut sandbox =
            Self { unshare: None, confine: this.filter(|_| cfg!(target_os = "linux")), folder };
        for inner in ["home", "tmp"] {
            fs::create_dir(sandbox.folder.join(inner))?;
        }
        // `confine` does not work without Landlock, or if the current executable is not this
        // program.
        if sandbox.confine.is_some() && !sandbox.works().await {
            sandbox.confine = None;
        }
        if let Some(unshare) = on_path("unshare") {
            // With `--fork`, the program may start before its memory is limited from here, so only
            // `confine` can limit it.
            let may_fork = sandbox.confine.is_some();
            let is_safe = |(arguments, _): &Namespaces| may_fork || !arguments.contains("--fork");
            for namespaces in NAMESPACES.into_iter().filter(is_safe) {
                sandbox.unshare = Some((unshare.clone(), namespaces));
                if sandbox.works().await {
                    return Ok(sandbox);
                }
            }
            sandbox.unshare = None;
        }
        Ok(sandbox)
    }

    /// Whether a program can be started with these restrictions.
    async fn works(&self) -> bool {
        let (program, command, expected) = match &self.confine {
            Some(this) => (Some(this.clone()), "confine", IN_FORCE),
            None => (on_path("true"), "--", ""),
        };
        let Some(program) = program else {
            return false;
        };
        let mut probe = self.namespaced(&program, &CommandLine::new(command));
        let Ok(Ok(output)) = timeout(PROBE, probe.kill_on_drop(true).output()).await else {
            return false;
        };
        output.status.success() && output.stdout.trim_ascii() == expected.as_bytes()
    }

    /// Whether the network is unreachable for programs.
    pub(crate) const fn is_offline(&self) -> bool {
        self.unshare.is_some()
    }

    /// A sentence on the restrictions that are in force, and on those that are not.
    pub(crate) fn in_force(&self) -> String {
        let effect: &str = match (&self.confine, &self.unshare) {
            (Some(_), Some((_, (_, names)))) => &format!("confined by Landlock, and by {names}"),
            (Some(_), None) => "confined by Landlock; it has the network of this machine",
            (None, Some((_, (_, names)))) => {
                &format!("confined by {names}; it can read what you can read")
            }
            (None, None) => {
                "not confined: this machine gives neither Landlock nor namespaces, so helm and \
                 kustomize can read what you can read and have its network"
            }
        };
        format!("Rendering is {effect}.")
    }

    /// Whether any restriction is in force.
    pub(crate) const fn is_confined(&self) -> bool {
        self.confine.is_some() || self.unshare.is_some()
    }

    /// A command that runs `program` with the restrictions. Of the sandbox's copies, it can read
    /// only `copy`.
    pub(crate) fn command(
        &self,
        program: &Path,
        line: &CommandLine,
        copy: &Path,
        limits: Limits,
    ) -> Command {
        let Some(this) = &self.confine else {
            return self.namespaced(program, line);
        };
        let mut confine = CommandLine::new("confine");
        confine.option("--memory", MAX_MEMORY);
        confine.option("--file-size", limits.file);
        for folder in ["home", "tmp"] {
            confine.option("--write", self.folder.join(folder).as_path());
        }
        confine.option("--write", Path::new("/dev/null"));
        confine.option("--read", self.folder.join("values").as_path());
        confine.option("--read", copy);
        for library in LIBRARIES {
            confine.option("--read", Path::new(library));
        }
        let file = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        confine.option("--start", file.as_path());
        for other in others(&file) {
            confine.option("--start", other.as_path());
        }
        let mut command = self.namespaced(this, &confine.word(program));
        command.args(line.arguments());
        command
    }

    /// A command that runs `program` in namespaces, if they are supported.
    fn namespaced(&self, program: &Path, line: &CommandLine) -> Command {
        let mut command = match &self.unshare {
            Some((unshare, (arguments, _))) => {
                let namespaces = CommandLine::new(arguments).word(program);
                let mut command = Command::new(unshare);
                command.args(namespaces.arguments());
                command
            }
            None => Command::new(program),
        };
        command.args(line.arguments());
        self.empty(&mut command);
        command
    }

    /// Sets an environment in which only PATH is from the user, because scripts that start the real
    /// program need it. Without namespaces, the proxy is a port on which nobody listens, and git
    /// may use no transport.
    fn empty(&self, command: &mut Command) {
        let (home, tmp) = (self.folder.join("home"), self.folder.join("tmp"));
        command.env_clear().current_dir(&tmp);
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        for variable in [
            "HOME",
            "HELM_PLUGINS",
            "HELM_CACHE_HOME",
            "HELM_CONFIG_HOME",
            "HELM_DATA_HOME",
            "KUSTOMIZE_PLUGIN_HOME",
        ] {
            command.env(variable, &home);
        }
        command
            .env("TMPDIR", &tmp)
            .env("KUBECONFIG", home.join("config"))
            .env("GIT_ALLOW_PROTOCOL", "none")
            // With this limit, Go collects garbage before the memory limit is reached.
            .env("GOMEMLIMIT", (MAX_MEMORY / 4 * 3).to_string());
        for variable in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(variable, format!("http://{NOWHERE}"));
        }
    }
}

/// A copy of some folders, which is deleted when this is dropped.
pub(crate) struct Copy {
    folder: tempfile::TempDir,
    /// The folder that contains all of them except those in `fetched`.
    top: PathBuf,
    /// The folder with the fetched files.
    fetched: Option<PathBuf>,
    /// The number of bytes and of entries that were copied so far.
    bytes: Cell<u64>,
    entries: Cell<usize>,
    /// The state of all originals that were copied.
    stamp: RefCell<DefaultHasher>,
    /// The originals of files that have another name or place in the copy, by their paths there.
    renamed: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl Copy {
    /// An empty folder in `under`.
    pub(crate) fn empty(under: &Path) -> Result<Self, Failure> {
        Self::of(&BTreeSet::new(), under, None, under)
    }

    /// Copies `folders`, whose links are followed and which are in `top` or in `fetched`, into a
    /// folder in `under`.
    pub(crate) fn of(
        folders: &BTreeSet<PathBuf>,
        top: &Path,
        fetched: Option<&Path>,
        under: &Path,
    ) -> Result<Self, Failure> {
        let copy = Self {
            folder: tempfile::tempdir_in(under).map_err(Failure::Copy)?,
            top: top.to_owned(),
            fetched: fetched.map(Path::to_owned),
            bytes: Cell::default(),
            entries: Cell::default(),
            stamp: RefCell::default(),
            renamed: RefCell::default(),
        };
        for folder in folders {
            let is_covered = |above: &Path| folders.contains(above);
            if !folder.ancestors().skip(1).any(is_covered) {
                copy.copy_folder(folder, folders)?;
            }
        }
        Ok(copy)
    }

    /// Copies `top` with everything in it. Links may lead into any of `folders`.
    fn copy_folder(&self, top: &Path, folders: &BTreeSet<PathBuf>) -> Result<(), Failure> {
        let mut waiting = vec![top.to_owned()];
        while let Some(folder) = waiting.pop() {
            fs::create_dir_all(self.of_original(&folder)).map_err(Failure::Copy)?;
            let unreadable = |error| self.unreadable(&folder, &error);
            for entry in fs::read_dir(&folder).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                self.count(1, 0)?;
                let is_git = path.file_name() == Some(OsStr::new(GIT));
                if !is_git && self.copy_entry(&path, folders)? {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }

    /// Copies one entry. Returns whether it is a folder, which is not copied yet.
    fn copy_entry(&self, path: &Path, folders: &BTreeSet<PathBuf>) -> Result<bool, Failure> {
        let unreadable = |error| self.unreadable(path, &error);
        let metadata = fs::symlink_metadata(path).map_err(unreadable)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            return Ok(true);
        }
        let copied = self.of_original(path);
        if kind.is_symlink() {
            // A link that leads nowhere is left out, because nothing can be read through it.
            let Ok(target) = fs::canonicalize(path) else {
                return Ok(false);
            };
            if !folders.iter().any(|folder| is_inside(folder, &target)) {
                return Err(self.refused(path, "a link that leads out of it"));
            }
            link(&self.of_original(&target), &copied).map_err(Failure::Copy)?;
            (path, target).hash(&mut *self.stamp.borrow_mut());
        } else if kind.is_file() {
            self.count(0, metadata.len())?;
            self.mark(path, &metadata);
            fs::copy(path, copied).map_err(unreadable)?;
        } else {
            return Err(self.refused(path, "which is neither a file nor a folder"));
        }
        Ok(false)
    }

    /// Puts a copy of the file `original`, or a link to the copy of the folder `original`, into the
    /// copy of `folder`.
    ///
    /// # Errors
    /// The name is not that of a file, the copy becomes too large, or a file cannot be written.
    pub(crate) fn add(&self, original: &Path, folder: &Path, name: &str) -> Result<(), Failure> {
        // The name comes from a chart's dependencies, and could lead out of the copy.
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            let problem = format!("{name:?} is not the name of a file");
            let error = io::Error::new(io::ErrorKind::InvalidInput, problem);
            return Err(Failure::Copy(error));
        }
        let into = self.of_original(folder);
        fs::create_dir_all(&into).map_err(Failure::Copy)?;
        let at = into.join(name);
        if original.is_dir() {
            self.count(1, 0)?;
            return link(&self.of_original(original), &at).map_err(Failure::Copy);
        }
        self.copy_file(original, &at)?;
        if original.starts_with(&self.top) {
            self.set_original(at, original);
        }
        Ok(())
    }

    /// Copies the file `original` to the place `at` in the copy.
    ///
    /// # Errors
    /// The copy becomes too large, or a file cannot be read or written.
    pub(crate) fn copy_file(&self, original: &Path, at: &Path) -> Result<(), Failure> {
        let metadata = fs::metadata(original).map_err(Failure::Copy)?;
        self.count(1, metadata.len())?;
        self.mark(original, &metadata);
        fs::copy(original, at).map(drop).map_err(Failure::Copy)
    }

    /// Adds the state of a file to the stamp. A changed file is a new one with another time.
    fn mark(&self, original: &Path, metadata: &fs::Metadata) {
        (original, metadata.len(), metadata.modified().ok()).hash(&mut *self.stamp.borrow_mut());
    }

    /// A number that is the same for copies of the same files in the same state.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.borrow().finish()
    }

    /// Counts what is about to be put into the copy.
    ///
    /// # Errors
    /// The copy becomes too large.
    pub(crate) fn count(&self, entries: usize, bytes: u64) -> Result<(), Failure> {
        self.entries.update(|sum| sum + entries);
        self.bytes.update(|sum| sum.saturating_add(bytes));
        if self.entries.get() > MAX_ENTRIES || self.bytes.get() > MAX_COPY {
            return Err(Failure::Other(format!(
                "it holds more than {} MiB or {MAX_ENTRIES} files",
                MAX_COPY >> 20
            )));
        }
        Ok(())
    }

    /// The folder that contains the copy, for files next to it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of `original` in the copy.
    pub(crate) fn of_original(&self, original: &Path) -> PathBuf {
        self.tops()
            .find_map(|(top, copied)| Some(copied.join(original.strip_prefix(top).ok()?)))
            .unwrap_or_else(|| self.root().join(original))
    }

    /// The original of the path `copied`.
    pub(crate) fn original(&self, copied: PathBuf) -> PathBuf {
        if let Some(original) = self.renamed.borrow().get(&copied) {
            return original.clone();
        }
        self.tops()
            .find_map(|(top, copy)| Some(top.join(copied.strip_prefix(copy).ok()?)))
            .unwrap_or(copied)
    }

    /// The folders that contain the originals, each with its copy.
    fn tops(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        let fetched = self.fetched.as_deref().map(|folder| (folder, self.fetched_root()));
        fetched.into_iter().chain([(self.top.as_path(), self.root())])
    }

    /// Records the original of `copied`, a file that has another name or place in the copy.
    pub(crate) fn set_original(&self, copied: PathBuf, original: &Path) {
        self.renamed.borrow_mut().insert(copied, original.to_owned());
    }

    /// The text with the names of the originals instead of those of the copy, and without the
    /// folders for temporary files.
    pub(crate) fn with_originals(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (copied, original) in &*self.renamed.borrow() {
            let original = original.strip_prefix(&self.top).unwrap_or(original);
            text = text.replace(&copied.display().to_string(), &original.display().to_string());
        }
        let text = without_folder(&text, &self.root());
        let fetched = format!("{}/", self.fetched_root().display());
        let mut parts = text.split(&fetched);
        let first = parts.next().unwrap_or_default().to_owned();
        // Fetched files are in a folder whose name is a digest.
        let rest: String =
            parts.map(|part| part.split_once('/').map_or(part, |(_, rest)| rest)).collect();
        // The copy's own folder is in that of the sandbox.
        let folders = self.folder.path().ancestors().take(2);
        folders.fold(first + &rest, |shorter, folder| without_folder(&shorter, folder))
    }

    fn fetched_root(&self) -> PathBuf {
        self.folder.path().join("fetched")
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn refused(&self, path: &Path, problem: &str) -> Failure {
        // Fetched files are in a folder whose name is a digest.
        let fetched = self.fetched.as_deref().and_then(|top| {
            let mut parts = path.strip_prefix(top).ok()?.components();
            parts.next().map(|_| parts.as_path())
        });
        let inner = fetched.or_else(|| path.strip_prefix(&self.top).ok());
        Failure::Other(format!("it holds {}, {problem}", inner.unwrap_or(path).display()))
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Failure {
        self.refused(path, &format!("which cannot be read: {error}"))
    }
}

/// The text with paths relative to `folder`.
pub(crate) fn without_folder(text: &str, folder: &Path) -> String {
    let folder = folder.display();
    text.replace(&format!("{folder}/"), "").replace(&folder.to_string(), ".")
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

/// On other systems, a link is replaced by a copy of its target.
#[cfg(not(unix))]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    fs::copy(target, at).map(drop)
}
