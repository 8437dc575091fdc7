//! What the steps are made of.

use serde_json::Value;

use super::step::{Action, Manifest, RUNS, Step};
use super::subject::Subject;
use super::target::Target;
use super::users::User;
use super::{CopyBy, MigrationInput, Wanted, new_claim, words};
use crate::diagnosis::{Delivery, command};
use engine::model::Text;
use engine::model::autoscaler::Autoscaler;

/// Everything that the steps are made of.
pub(super) struct Inputs<'a> {
    pub(super) wanted: Wanted<'a>,
    pub(super) facts: MigrationInput<'a>,
    pub(super) subject: &'a Subject<'a>,
    pub(super) target: &'a Target<'a>,
    /// The name of the new claim.
    pub(super) name: &'a str,
    pub(super) snapshot_class: Option<&'a Text>,
    pub(super) deliveries: &'a [Delivery],
}

impl Inputs<'_> {
    /// A command of kubectl.
    pub(super) fn kubectl<S: AsRef<str>>(&self, arguments: &[S]) -> Action {
        Action::Run(command::line(self.facts.cluster.kubectl, arguments))
    }

    /// A command of kubectl about the claim's namespace.
    pub(super) fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Action {
        Action::Run(self.line(arguments))
    }

    /// The same as a part of another command.
    pub(super) fn line<S: AsRef<str>>(&self, arguments: &[S]) -> String {
        let namespace = ["-n", self.wanted.namespace];
        let arguments = arguments.iter().map(AsRef::as_ref);
        let all: Vec<&str> = namespace.into_iter().chain(arguments).collect();
        command::line(self.facts.cluster.kubectl, &all)
    }

    /// A sentence of a plan, with what is known of all of them and with `more` filled in.
    pub(super) fn words(&self, name: &str, more: &[(&str, &str)]) -> String {
        let job = format!("job/{}", self.copy_name());
        let known = [
            ("claim", self.wanted.claim),
            ("new", self.name),
            ("namespace", self.wanted.namespace),
            ("mode", self.wanted.mode.name()),
            ("mode-short", self.wanted.mode.short()),
            ("image", self.wanted.image),
            ("class", &self.target.class),
            ("volume", self.subject.volume_name()),
            ("kubectl", self.facts.cluster.kubectl),
            ("job", &job),
        ];
        words::words(name, &[more, &known].concat())
    }

    /// A step with the words that are there for it.
    pub(super) fn step(&self, name: &str, actions: Vec<Action>) -> Step {
        let part = |part: &str| self.words(&format!("{name}.{part}"), &[]);
        let blocks = Some(part("blocks")).filter(|it| !it.is_empty());
        Step {
            title: part("title"),
            blocks: blocks.unwrap_or_else(|| RUNS.to_owned()),
            text: part("text"),
            actions,
            then: part("then"),
        }
    }

    pub(super) fn apply(file: &str, object: Value) -> Action {
        Action::Apply(Manifest {
            file: file.to_owned(),
            object,
        })
    }

    pub(super) fn copy_name(&self) -> String {
        new_claim::name_of(self.name, "copy")
    }

    pub(super) fn snapshot_name(&self) -> String {
        new_claim::name_of(self.name, "from")
    }

    /// The snapshot, as kubectl takes it.
    pub(super) fn snapshot(&self) -> String {
        format!(
            "volumesnapshots.snapshot.storage.k8s.io/{}",
            self.snapshot_name()
        )
    }

    /// Whether the data is copied, which takes that nobody writes to it.
    pub(super) fn copies(&self) -> bool {
        self.wanted.copy != CopyBy::Nothing
    }

    /// The users that have pods, or may have some at any moment.
    pub(super) fn running(&self) -> impl Iterator<Item = &User<'_>> {
        self.subject.users.iter().filter(|user| user.runs())
    }

    /// The sentence of that name for each of the strangers: there is a command for none of
    /// them.
    pub(super) fn of_strangers(&self, name: &str) -> Vec<String> {
        let strangers = self.subject.strangers.iter();
        let sentence = |shown: String| self.words(name, &[("stranger", &shown)]);
        strangers.map(|it| sentence(it.shown())).collect()
    }

    pub(super) fn autoscalers(&self) -> impl Iterator<Item = &Autoscaler> {
        let users = self.subject.users.iter();
        users.flat_map(|user| user.autoscalers.iter().copied())
    }

    /// The objects of KEDA behind autoscalers: unlike an autoscaler itself, KEDA scales
    /// from 0 up.
    pub(super) fn scaled_objects(&self) -> impl Iterator<Item = &Text> {
        self.autoscalers().filter_map(Autoscaler::scaled_object)
    }
}
