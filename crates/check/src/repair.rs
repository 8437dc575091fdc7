//! Repairs manifests in their files. The caller then parses them again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use json_patch::Patch;
use serde_json::{Value, json};
use similar::TextDiff;

use super::files::Files;
use super::ids::TextId;
use super::judge::Subject;
use super::merge_patch;
use super::parse::Parsed;
use super::scope::Scopes;
use super::text::Release;
use engine::model::object::ObjectRef;
use engine::policy::{RemedyChoice, ignoring};
use engine::verdict::{EffectivePolicy, Mode};
use manifest::edit;
use manifest::objects::Item;
use manifest::source::{STDIN, Source};
use manifest::split::{Part, parts};
use manifest::tree::Tree;
use report::{Unread, safe};

/// The result of repairing.
#[derive(Default)]
pub struct Edits {
    /// Diffs and patches to print.
    pub output: String,
    /// The changes that were made or that the user has to make, one sentence each.
    pub done: Vec<String>,
    /// The files that could not be changed.
    pub failed: Vec<Unread>,
    /// Standard input after the edits, if it is repaired and all of it could be read.
    pub stdin: Option<String>,
    /// The edited files by their paths, with links followed.
    pub files: BTreeMap<PathBuf, Edited>,
}

/// An object that has a remedy.
struct Repairable<'p> {
    known: &'p Item,
    document: Value,
    patch: Patch,
    /// The names of the remedies in the patch.
    remedies: String,
}

/// A file that is edited.
pub struct Edited {
    /// Its name as the user gave it.
    pub name: String,
    before: String,
    /// Its text after the edits.
    pub after: String,
    /// The changes in it, one sentence each.
    pub done: Vec<String>,
}

impl Parsed {
    /// Repairs every object that has a remedy, with `remedy` in place of the one that the policy
    /// chooses. Objects about which something is only assumed are repaired if `remedy` is right for
    /// every class. Standard input is repaired if `repairs_stdin`; otherwise its objects get patches.
    pub fn edits(
        &self,
        effective: &EffectivePolicy,
        remedy: Option<RemedyChoice>,
        repairs_stdin: bool,
        files: &dyn Files,
    ) -> Edits {
        let mut edits = Edits::default();
        if repairs_stdin {
            edits.stdin = self.stdin();
            if edits.stdin.is_none() {
                let message = "nothing was written, because not all of it could be read.";
                edits.fail(STDIN, message.to_owned());
            }
        }
        let repairable = self.repairable(effective, remedy, |_| true);
        for of_file in repairable.chunk_by(|a, b| TextId::of(a.known) == TextId::of(b.known)) {
            let text = self.text(of_file[0].known);
            match text.release() {
                Some(release) => {
                    for object in of_file {
                        if !edits.edits_origin_of(object, files) {
                            edits.by_hand(release, object);
                        }
                    }
                }
                None => edits.file(&text.source, of_file),
            }
        }
        edits.files.retain(|_, edited| edited.before != edited.after);
        edits
    }

    /// The text of standard input, if all of it could be read.
    fn stdin(&self) -> Option<String> {
        if self.reading.unread.iter().any(|unread| unread.file == STDIN) {
            return None;
        }
        let mut sources = self.reading.texts.iter().map(|text| &text.source);
        let text = sources.find(|source| source.is_stdin())?.text().ok()?;
        let is_yaml = |part: &Part<'_>| Tree::parse(part.text).is_ok();
        parts(&text).iter().all(is_yaml).then(|| text.into_owned())
    }

    /// The text of the file `path`, whose links are followed, after the same edits of all of its
    /// objects, or of one; `None` if it does not change.
    pub fn repaired(
        &self,
        effective: &EffectivePolicy,
        remedy: Option<RemedyChoice>,
        path: &Path,
        object: Option<&ObjectRef>,
    ) -> Option<String> {
        let wanted = |known: &Item| {
            object.is_none_or(|object| *object == known.reference)
                && self.text(known).file() == Some(path)
        };
        self.edited(path, &self.repairable(effective, remedy, wanted))
    }

    /// The text of the file `path`, whose links are followed, after an annotation asks to ignore the
    /// rule on the object; `None` if it does not change.
    pub fn with_ignored(&self, rule: &str, path: &Path, object: &ObjectRef) -> Option<String> {
        let is_meant =
            |known: &Item| known.reference == *object && self.text(known).file() == Some(path);
        let (_, known) = self.objects().find(|(_, known)| is_meant(known))?;
        let document = known.outline.document();
        let patch = ignoring(&document, rule);
        self.edited(path, &[Repairable { known, document, patch, remedies: String::new() }])
    }

    /// The text of the file after the edits of its objects.
    fn edited(&self, path: &Path, repairable: &[Repairable<'_>]) -> Option<String> {
        let mut edits = Edits::default();
        edits.file(&self.text(repairable.first()?.known).source, repairable);
        let edited = edits.files.remove(path)?;
        (edited.before != edited.after).then_some(edited.after)
    }

    /// The `wanted` objects that have a remedy.
    fn repairable(
        &self,
        effective: &EffectivePolicy,
        remedy: Option<RemedyChoice>,
        wanted: impl Fn(&Item) -> bool,
    ) -> Vec<Repairable<'_>> {
        let repairs_guesses = remedy.is_some_and(RemedyChoice::suits_every_class);
        let scopes = Scopes::of(self);
        let mut repairable = Vec::new();
        let ids = scopes.groups().into_iter().flatten();
        for id in ids.filter(|id| wanted(self.object(*id))) {
            let mut subject = Subject::of(&scopes, id);
            let verdict = subject.verdict(effective, Mode::Repair { remedy });
            if let Some(patch) = verdict.patch
                && (repairs_guesses || !subject.rests_on_an_assumption())
            {
                let remedies: Vec<&str> = verdict
                    .findings
                    .iter()
                    .flat_map(|finding| &finding.remedies)
                    .map(|proposal| proposal.remedy.name)
                    .collect();
                repairable.push(Repairable {
                    known: self.object(id),
                    patch,
                    remedies: remedies.join(", "),
                    document: subject.document().clone(),
                });
            }
        }
        repairable
    }
}

impl Repairable<'_> {
    /// The patch that kustomize applies to the object, with a comment that names the object.
    fn patch_for_kustomize(&self) -> String {
        let object = &self.known.reference;
        let template = self.known.template.as_deref();
        let origin =
            template.map_or_else(String::new, |template| format!(", rendered from {template}"));
        let mut after = self.document.clone();
        // The patch was made for this object, so it applies.
        let _ = json_patch::patch(&mut after, &self.patch);
        let patch = merge_patch::strategic(object, &self.document, &after);
        let patch = safe::yaml(edit::to_yaml(&patch), &patch);
        let title = format!("A patch for {object}{origin}.");
        format!("---\n# {}\n{patch}", safe::line(&title))
    }

    /// The post-renderer for a HelmRelease that repairs the object.
    fn post_renderer(&self) -> Value {
        let object = &self.known.reference;
        let patch = serde_json::to_string(&self.patch).unwrap_or_default();
        let target = json!({"kind": object.kind, "name": object.name});
        let patches = json!([{"target": target, "patch": patch}]);
        json!({"spec": {"postRenderers": [{"kustomize": {"patches": patches}}]}})
    }
}

/// The advice for an object that cannot be edited in its file because it was rendered or piped.
fn where_to_change(source: &Source, repairable: &Repairable<'_>) -> String {
    let (object, file) = (&repairable.known.reference, &source.name);
    match repairable.known.template.as_deref() {
        Some(template) => format!(
            "{object} is rendered from {template}: change the value that becomes the field, if the chart has one, else apply the patch."
        ),
        None => format!(
            "{object} was read from {file}: change it where it is written, or apply the patch."
        ),
    }
}

impl Edits {
    fn file(&mut self, source: &Source, repairable: &[Repairable<'_>]) {
        let Ok(before) = source.text() else { return };
        let parts = parts(&before);
        let mut texts: Vec<Cow<'_, str>> = parts.iter().map(|part| part.text.into()).collect();
        let mut done = Vec::new();
        for of_part in repairable.chunk_by(|a, b| a.known.place.part == b.known.place.part) {
            let at = of_part[0].known.place.part;
            let Some(part) = parts.get(at) else { continue };
            if let Some(edited) = self.part(source, of_part, part, &mut done) {
                texts[at] = edited.into();
            }
        }
        let Some(path) = source.real_path() else {
            if self.repairs(source) {
                self.stdin = Some(texts.concat());
                self.done.extend(done);
            }
            return;
        };
        if source.is_utf16() {
            let message = "this file is UTF-16 text, which is not edited; save it as UTF-8 first.";
            return self.fail(&source.name, message.to_owned());
        }
        let edited = Edited {
            name: source.name.clone(),
            after: texts.concat(),
            before: before.into_owned(),
            done,
        };
        self.files.insert(path.to_owned(), edited);
    }

    /// The text of a document with its objects repaired; `None` if it does not change.
    fn part(
        &mut self,
        source: &Source,
        repairable: &[Repairable<'_>],
        part: &Part<'_>,
        done: &mut Vec<String>,
    ) -> Option<String> {
        let is_by_hand = source.path().is_none() || part.template().is_some();
        if is_by_hand && !self.repairs(source) {
            for object in repairable {
                self.done.push(where_to_change(source, object));
                self.output += &object.patch_for_kustomize();
            }
            return None;
        }
        let changes: Vec<edit::Change<'_>> =
            repairable.iter().map(|object| (&*object.known.place.items, &object.patch)).collect();
        let (edited, results) = edit::apply_each(part.text, &changes);
        for (object, result) in repairable.iter().zip(results) {
            let name = &object.known.reference;
            match result {
                Ok(()) => {
                    done.push(format!(
                        "{}: repaired {name} with {}.",
                        source.name, object.remedies
                    ));
                }
                Err(refusal) => {
                    self.output += &object.patch_for_kustomize();
                    let message =
                        format!("{name} is not edited: {refusal} Apply the patch by hand.");
                    self.fail(&source.name, message);
                }
            }
        }
        Some(edited)
    }

    /// Whether the source is standard input, whose text is repaired.
    fn repairs(&self, source: &Source) -> bool {
        self.stdin.is_some() && source.is_stdin()
    }

    /// Whether the file from which the object was rendered is edited.
    fn edits_origin_of(&self, repairable: &Repairable<'_>, files: &dyn Files) -> bool {
        repairable
            .known
            .template
            .as_deref()
            .and_then(|template| files.real(Path::new(template)))
            .is_some_and(|file| self.files.contains_key(&file))
    }

    /// Prints the patch for an object of a release, as a post-renderer if the release supports
    /// them.
    fn by_hand(&mut self, release: &Release, repairable: &Repairable<'_>) {
        let (object, name) = (&repairable.known.reference, &release.owner);
        if release.is_of_helm() && *release.owner.kind == *"HelmRelease" {
            let renderer = repairable.post_renderer();
            self.output += &format!("---\n# A post-renderer for {name}.\n");
            self.output += &safe::yaml(edit::to_yaml(&renderer), &renderer);
            self.done.push(format!(
                "{name} deploys {object}: set the value of its chart that becomes the field, or add the post-renderer."
            ));
            return;
        }
        self.output += &repairable.patch_for_kustomize();
        let template = repairable.known.template.as_deref();
        self.done.push(match template.filter(|_| !release.is_of_helm()) {
            Some(template) => format!(
                "{name} renders {object} from {template}. Change it there, or add the patch to the release."
            ),
            None => format!(
                "{name} deploys {object}: set the value of its chart that becomes the field, or apply the patch after rendering."
            ),
        });
    }

    /// Prints the changes in the format of `git apply` instead of editing the files. The paths
    /// start at the top of the repository.
    pub fn diff(&mut self, files: &dyn Files) {
        for (path, edited) in std::mem::take(&mut self.files) {
            let path = files.path_of(&path);
            // git reads a lone carriage return as a part of a line, and `similar` as its end. A
            // terminal goes back to the start of the line.
            if edited.before.replace("\r\n", "").contains('\r') {
                self.done.push(format!(
                    "{path}: a carriage return stands without a line feed, which a diff cannot show \
                     safely, so none is printed. --fix edits the file.",
                ));
                continue;
            }
            let name = safe::line(&path);
            let diff = TextDiff::from_lines(&edited.before, &edited.after)
                .unified_diff()
                .header(&format!("a/{name}"), &format!("b/{name}"))
                .to_string();
            let safe = safe::patch(&diff);
            if name != path || matches!(safe, Cow::Owned(_)) {
                self.done.push(format!(
                    "{path}: the diff shows characters that are not safe to print as escapes, so \
                     it cannot be applied. --fix edits the file.",
                ));
            }
            self.output += &format!("diff --git a/{name} b/{name}\n{safe}");
        }
    }

    /// Adds the reason why a file could not be changed.
    pub fn fail(&mut self, file: &str, message: String) {
        self.failed.push(Unread { file: file.to_owned(), path: None, at: None, message });
    }
}
