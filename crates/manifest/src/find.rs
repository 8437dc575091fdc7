//! Finds the files to read.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::error::{Problem, ReadError};
use super::kustomization::FILE_NAMES;
use super::source::{STDIN, Source, read, shown, text_of};
use super::split::parts;
use super::template::may_be_a_manifest;

/// Extensions of the files that are read in directories.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Extensions of templates for such a file, by Jinja and others.
const TEMPLATE_EXTENSIONS: [&str; 2] = ["j2", "jinja2"];

/// The extension of a helmfile that is a template of Go. Other files with it are values or parts.
const TEMPLATE_OF_HELMFILE: &str = "gotmpl";

/// Directories with third-party files, which are meant for programs and not for clusters.
const FOREIGN: [&str; 4] = ["vendor", "node_modules", "site-packages", "__pycache__"];

/// The file that marks a directory as a virtual environment of Python (PEP 405).
const VIRTUAL_ENVIRONMENT: &str = "pyvenv.cfg";

/// The folder of Git's own files, or the file that names it in a worktree.
const GIT: &str = ".git";

/// Globs of paths to leave out when directories are searched. They are read like a `.gitignore` at
/// the top of the searched directory.
#[derive(Clone, Debug)]
pub struct Exclude(Gitignore);

/// A glob that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("--exclude \"{glob}\" is not a glob: {source}.")]
pub struct ExcludeError {
    glob: String,
    source: ignore::Error,
}

impl Exclude {
    /// Leaves out nothing.
    pub fn nothing() -> Self {
        Self(Gitignore::empty())
    }

    /// Leaves out the paths that any of the globs matches.
    ///
    /// # Errors
    /// One of the globs cannot be understood.
    pub fn new<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Self, ExcludeError> {
        let refused = |glob: &str, source| ExcludeError { glob: glob.to_owned(), source };
        let mut builder = GitignoreBuilder::new("");
        for glob in globs {
            builder.add_line(None, glob).map_err(|source| refused(glob, source))?;
        }
        builder.build().map(Self).map_err(|source| refused("", source))
    }
}

/// The result of [`find`].
#[derive(Debug, Default)]
pub struct Found {
    /// The files, in the order given; files in directories are sorted by name.
    pub sources: Vec<Source>,
    /// The files and directories that could not be opened.
    pub errors: Vec<ReadError>,
    /// The links in directories that were not followed, because they lead out of the directory or
    /// nowhere.
    pub links: Vec<PathBuf>,
    /// The templates of manifests (`web.yaml.j2`), which must be rendered first.
    pub templates: Vec<Source>,
    /// The hidden files, and those of [`Self::add_ignored`].
    pub hidden: Vec<Hidden>,
    seen: HashSet<PathBuf>,
}

/// A hidden file in a directory, which is a source only if it is named.
#[derive(Debug)]
pub struct Hidden {
    /// The file.
    pub source: Source,
    /// The hidden folder around it, or the file itself.
    pub top: PathBuf,
}

impl Borrow<Source> for Hidden {
    fn borrow(&self) -> &Source {
        &self.source
    }
}

/// Finds the manifests under `paths`: a file is taken with any name, a directory is searched for
/// `.yaml`, `.yml` and `.json` files, for `Kustomization` and for helmfiles that are templates, and
/// `-` reads `stdin`. Paths that a `.gitignore` or a glob of `exclude` leaves out, hidden paths and
/// third-party directories (`vendor`, `node_modules`, virtual environments) are searched only if
/// they are named. A link in a directory is followed if it leads to a file in the same directory.
/// Every file is taken once, even if several links lead to it.
pub fn find(paths: &[PathBuf], exclude: &Exclude, stdin: &mut dyn Read) -> Found {
    let mut found = Found::default();
    for path in paths {
        if path.as_os_str() == STDIN {
            found.stream(STDIN, &mut *stdin);
            continue;
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => found.directory(path, exclude),
            Ok(metadata) if metadata.is_file() => found.file(path, true),
            Ok(metadata) => found.pipe(path, metadata.file_type()),
            Err(error) => found.unreadable(path, error),
        }
    }
    // Another path, or another link, may lead to the same file.
    let Found { links, hidden, seen, .. } = &mut found;
    let is_seen = |path: &Path| fs::canonicalize(path).is_ok_and(|real| seen.contains(&real));
    links.retain(|link| !is_seen(link));
    hidden.retain(|file| file.source.path().is_none_or(|path| !is_seen(path)));
    found
}

impl Found {
    /// Adds a file in `folder` that is ignored, although Git tracks it, to those that are hidden.
    pub fn add_ignored(&mut self, folder: &Path, inner: &Path, exclude: &Exclude) {
        let path = folder.join(inner);
        let is_seen = fs::canonicalize(&path).is_ok_and(|real| self.seen.contains(&real));
        let is_foreign = |part: Component<'_>| FOREIGN.iter().any(|name| part.as_os_str() == *name);
        let is_skipped = inner.components().any(is_foreign)
            || exclude.0.matched_path_or_any_parents(inner, false).is_ignore();
        if is_manifest_name(&path) && !is_seen && !is_skipped {
            self.hidden.push(Hidden { source: Source::file(path.clone(), None, false), top: path });
        }
    }

    fn unreadable(&mut self, path: &Path, error: io::Error) {
        self.errors.push(ReadError::whole(&shown(path), Problem::Unreadable(error)));
    }

    fn stream(&mut self, name: &str, from: impl Read) {
        match read(name, from, 0).and_then(|bytes| text_of(name, bytes)) {
            Ok(text) if text.trim().is_empty() => {
                self.errors.push(ReadError::whole(name, Problem::Empty));
            }
            Ok(text) => self.sources.push(Source::in_memory(name, text)),
            Err(error) => self.errors.push(error),
        }
    }

    fn file(&mut self, path: &Path, named: bool) {
        let real = fs::canonicalize(path).ok();
        if let Some(real) = &real
            && !self.seen.insert(real.clone())
        {
            return;
        }
        self.sources.push(Source::file(path.to_owned(), real, named));
    }

    fn pipe(&mut self, path: &Path, kind: fs::FileType) {
        let name = shown(path);
        if !is_readable_stream(kind) {
            self.errors.push(ReadError::whole(&name, Problem::NotAFile));
            return;
        }
        match File::open(path) {
            Ok(file) => self.stream(&name, file),
            Err(error) => self.unreadable(path, error),
        }
    }

    fn directory(&mut self, root: &Path, exclude: &Exclude) {
        let (top, exclude) = (root.to_owned(), exclude.clone());
        let walk = WalkBuilder::new(root)
            .hidden(false)
            // Only other tools read a file `.ignore`.
            .ignore(false)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |entry| entry.depth() == 0 || is_searched(entry, &top, &exclude))
            .build();
        let real_root = fs::canonicalize(root);
        let is_inside =
            |target: &Path| real_root.as_ref().is_ok_and(|real| target.starts_with(real));
        for entry in walk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = path_of(&error).unwrap_or(root).to_owned();
                    // The error of the walk repeats the path.
                    let plain = fs::read_dir(&path).err().or_else(|| error.into_io_error());
                    self.unreadable(&path, plain.unwrap_or(io::ErrorKind::Other.into()));
                    continue;
                }
            };
            let path = entry.path();
            let Some(kind) = entry.file_type() else { continue };
            let source = || Source::file(path.to_owned(), None, false);
            if let Some(hidden) = hidden_top(path, root) {
                if kind.is_file() && is_manifest_name(path) {
                    self.hidden.push(Hidden { source: source(), top: hidden });
                }
            } else if !is_manifest_name(path) {
                if kind.is_file() && is_template_name(path) && may_hold_a_manifest(&source()) {
                    self.templates.push(source());
                }
            } else if kind.is_symlink() {
                let inside = fs::canonicalize(path).is_ok_and(|target| is_inside(&target));
                match fs::metadata(path) {
                    Ok(target) if inside && target.is_file() => self.file(path, false),
                    Ok(target) if inside && target.is_dir() => {}
                    _ => self.links.push(path.to_owned()),
                }
            } else if kind.is_file() {
                self.file(path, false);
            }
        }
    }
}

/// Whether a file of this name is a template of a manifest.
fn is_template_name(path: &Path) -> bool {
    let (stem, end) = (path.file_stem(), path.extension());
    end.is_some_and(|end| TEMPLATE_EXTENSIONS.iter().any(|extension| end == *extension))
        && stem.is_some_and(|stem| is_manifest_name(Path::new(stem)))
}

/// Whether a document of a template may be a manifest after rendering.
fn may_hold_a_manifest(template: &Source) -> bool {
    let text = template.text().unwrap_or_default();
    parts(&text).iter().any(|part| may_be_a_manifest(part.text))
}

/// The first hidden file or folder on the way from `root` to `path`.
fn hidden_top(path: &Path, root: &Path) -> Option<PathBuf> {
    let inner = path.strip_prefix(root).ok()?;
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    let depth = inner.components().position(is_hidden)?;
    Some(root.join(inner.components().take(depth + 1).collect::<PathBuf>()))
}

/// Whether an entry below `top` is read or searched.
fn is_searched(entry: &DirEntry, top: &Path, exclude: &Exclude) -> bool {
    let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    let foreign = is_directory
        && (FOREIGN.iter().any(|name| entry.file_name() == *name)
            || entry.path().join(VIRTUAL_ENVIRONMENT).is_file());
    let inner = entry.path().strip_prefix(top).unwrap_or(entry.path());
    !foreign && entry.file_name() != GIT && !exclude.0.matched(inner, is_directory).is_ignore()
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}

fn is_manifest_name(path: &Path) -> bool {
    match path.extension() {
        Some(extension) if extension == TEMPLATE_OF_HELMFILE => {
            let stem = path.file_stem();
            ["helmfile.yaml", "helmfile.yml"].iter().any(|name| stem == Some(name.as_ref()))
                || path.parent().is_some_and(|folder| folder.ends_with("helmfile.d"))
        }
        Some(extension) => EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)),
        None => FILE_NAMES.iter().any(|known| path.file_name() == Some(known.as_ref())),
    }
}

#[cfg(unix)]
fn is_readable_stream(kind: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device()
}

#[cfg(not(unix))]
fn is_readable_stream(_kind: fs::FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Read};
    use std::path::{Path, PathBuf};

    use super::super::error::MAX_BYTES;
    use super::super::source::Source;
    use super::{Exclude, Found, find};

    fn names(found: &Found, under: &Path) -> Vec<String> {
        found
            .sources
            .iter()
            .map(|source| {
                let path = Path::new(&source.name);
                path.strip_prefix(under).unwrap_or(path).to_string_lossy().into_owned()
            })
            .collect()
    }

    fn find_in(paths: &[&Path]) -> Found {
        find_except(paths, &[])
    }

    fn find_except(paths: &[&Path], globs: &[&str]) -> Found {
        let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).to_owned()).collect();
        let exclude = Exclude::new(globs.iter().copied()).unwrap();
        find(&paths, &exclude, &mut io::empty())
    }

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a: 1").unwrap();
        }
        folder
    }

    #[test]
    fn directories_are_searched_by_name_and_in_order() {
        let folder = folder(&[
            "b/z.yml",
            "b/a.JSON",
            "a.yaml",
            "b/Kustomization",
            "b/LICENSE",
            "b/helmfile.yaml.gotmpl",
            "b/values.yaml.gotmpl",
            "helmfile.d/a.yaml.gotmpl",
            "c.txt",
            ".git/x.yaml",
            ".hidden.yaml",
        ]);
        let root = folder.path();
        let found = find_in(&[root]);
        let expected = [
            "a.yaml",
            "b/Kustomization",
            "b/a.JSON",
            "b/helmfile.yaml.gotmpl",
            "b/z.yml",
            "helmfile.d/a.yaml.gotmpl",
        ];
        assert_eq!(names(&found, root), expected);
        assert!(found.errors.is_empty());

        let named = find_in(&[&root.join("c.txt"), &root.join(".git")]);
        assert_eq!(names(&named, root), ["c.txt", ".git/x.yaml"]);
    }

    #[test]
    fn what_is_ignored_excluded_or_foreign_is_left_out() {
        let folder = folder(&[
            "a.yaml",
            "build/b.yaml",
            "env/lib/c.yaml",
            "env/pyvenv.cfg",
            "go/vendor/d.yaml",
            "node_modules/e.yaml",
            "tests/f.yaml",
            "tests/keep/g.yaml",
            ".git/config",
        ]);
        let root = folder.path();
        fs::write(root.join(".gitignore"), "build/\n").unwrap();
        let all = ["a.yaml", "tests/f.yaml", "tests/keep/g.yaml"];
        assert_eq!(names(&find_in(&[root]), root), all);
        for (glob, left) in [
            ("tests", &["a.yaml"][..]),
            ("tests/*.yaml", &["a.yaml", "tests/keep/g.yaml"]),
            ("**/g.yaml", &["a.yaml", "tests/f.yaml"]),
            ("/f.yaml", &all),
        ] {
            let found = find_except(&[root], &[glob]);
            assert_eq!(names(&found, root), left, "{glob}");
        }
        let named = find_in(&[&root.join("go/vendor")]);
        assert_eq!(names(&named, root), ["go/vendor/d.yaml"]);
        let error = Exclude::new(["a{b"]).unwrap_err().to_string();
        assert!(error.starts_with("--exclude \"a{b\" is not a glob: "), "{error}");
    }

    #[test]
    fn standard_input_is_a_source() {
        let found = find(&["-".into()], &Exclude::nothing(), &mut "a: 1".as_bytes());
        assert_eq!(found.sources[0].name, "-");
        assert_eq!(found.sources[0].text().unwrap(), "a: 1");
        assert!(found.sources[0].path().is_none());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("binary.yaml"), b"a: \0\x01").unwrap();
        fs::write(root.join("latin1.yaml"), b"a: 1\nb: caf\xe9\n").unwrap();
        fs::File::create(root.join("large.yaml")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let table = [
            ("absent.yaml", "absent.yaml: This cannot be read: "),
            ("binary.yaml", "binary.yaml: This is a binary file; expected YAML or JSON text."),
            ("latin1.yaml", "latin1.yaml:2:7: This is not UTF-8 text;"),
            ("large.yaml", "large.yaml: This file is larger than 64 MiB,"),
        ];
        for (name, message) in table {
            let found = find_in(&[&root.join(name)]);
            let error = match found.sources.first() {
                Some(source) => source.text().unwrap_err(),
                None => found.errors.into_iter().next().unwrap(),
            };
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{}/", root.display())).unwrap();
            assert!(text.starts_with(message), "{name}: {text}");
        }
    }

    #[test]
    fn standard_input_without_end_is_cut_off() {
        let endless = &mut io::repeat(b' ').take(MAX_BYTES + 2);
        let found = find(&["-".into()], &Exclude::nothing(), endless);
        assert!(found.errors[0].to_string().contains("larger than 64 MiB"));
    }

    /// The links are like those of a mounted ConfigMap, whose files are links into a hidden
    /// directory.
    #[cfg(unix)]
    #[test]
    fn links_are_followed_once_and_never_out_of_the_directory() {
        use std::os::unix::fs::symlink;
        let folder = folder(&["in/a/x.yaml", "in/..1/m.yaml", "out/secret.yaml"]);
        let root = &folder.path().join("in");
        for (link, target) in [
            ("a/loop", root.clone()),
            ("b", root.join("a")),
            ("y.yaml", root.join("a/x.yaml")),
            ("mounted.yaml", root.join("..1/m.yaml")),
            ("z.yaml", root.join("nowhere")),
            ("other", root.join("nowhere")),
            ("itself.yaml", root.join("itself.yaml")),
            ("planted.yaml", folder.path().join("out/secret.yaml")),
            ("out", folder.path().join("out")),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let found = find_in(&[root, &root.join("a/x.yaml")]);
        assert_eq!(names(&found, root), ["a/x.yaml", "mounted.yaml"]);
        assert_eq!((found.links.len(), found.errors.len()), (3, 0));
    }

    #[test]
    fn names_are_shown_as_given() {
        let source = Source::in_memory("x", String::new());
        assert_eq!(source.name, "x");
        assert_eq!(super::shown(Path::new("./a/b.yaml")), "a/b.yaml");
    }
}
