//! The steps, in their order. Everything that blocks nothing comes first.

use serde_json::{Value, json};

use super::delivery::Delivery;
use super::plan::{Action, Manifest, Step, copy_takes};
use super::subject::Subject;
use super::target::Target;
use super::users::User;
use super::{CopyBy, Facts, Wanted, copy, new_claim, snapshot};
use crate::diagnosis::command;
use crate::model::Text;
use crate::model::autoscaler::Autoscaler;
use crate::model::workload::WorkloadKind;

/// What the words of a step begin with that the application does not outlast.
pub(super) const STANDS_STILL: &str = "The application stands still";

const RUNS: &str = "Blocks nothing.";

/// The annotation at which KEDA keeps a workload at a number (its documentation, "Pause
/// autoscaling").
const PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// Everything that the steps are made of.
pub(super) struct Journey<'a> {
    pub(super) wanted: Wanted<'a>,
    pub(super) facts: Facts<'a>,
    pub(super) subject: &'a Subject<'a>,
    pub(super) target: &'a Target<'a>,
    /// The name of the new claim.
    pub(super) name: &'a str,
    pub(super) snapshot_class: Option<&'a Text>,
    pub(super) deliveries: &'a [Delivery],
}

impl Journey<'_> {
    /// A command of kubectl.
    fn kubectl<S: AsRef<str>>(&self, arguments: &[S]) -> Action {
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        Action::Run(command::line(self.facts.cluster.kubectl, &arguments))
    }

    /// A command of kubectl about the claim's namespace.
    fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Action {
        let namespace = ["-n", self.wanted.namespace];
        let arguments = arguments.iter().map(AsRef::as_ref);
        let all: Vec<&str> = namespace.into_iter().chain(arguments).collect();
        self.kubectl(&all)
    }

    fn apply(file: &str, object: Value) -> Action {
        Action::Apply(Manifest {
            file: file.to_owned(),
            object,
        })
    }

    fn copy_name(&self) -> String {
        new_claim::name_of(self.name, "copy")
    }

    /// Whether the data is copied, which takes that nobody writes to it.
    fn copies(&self) -> bool {
        self.wanted.copy != CopyBy::Nothing
    }

    /// The users that have pods, or may have some at any moment.
    fn running(&self) -> impl Iterator<Item = &User<'_>> {
        self.subject.users.iter().filter(|user| user.runs())
    }

    fn autoscalers(&self) -> impl Iterator<Item = &Autoscaler> {
        let users = self.subject.users.iter();
        users.flat_map(|user| user.autoscalers.iter().copied())
    }

    /// The objects of KEDA behind autoscalers: unlike an autoscaler itself, KEDA scales
    /// from 0 up.
    fn scaled_objects(&self) -> impl Iterator<Item = &Text> {
        self.autoscalers()
            .filter_map(|it| it.metadata.controller.as_deref())
            .filter(|owner| owner.kind == "ScaledObject")
            .map(|owner| &owner.name)
    }
}

/// All steps.
pub(super) fn all(journey: &Journey<'_>) -> Vec<Step> {
    let by_snapshot = journey.wanted.copy == CopyBy::Snapshot;
    let stops = journey.copies() && journey.subject.is_used();
    let mut steps = Vec::new();
    steps.extend(journey.subject.is_used().then(|| hold_back(journey)));
    steps.extend(keep_volume(journey));
    if !by_snapshot {
        steps.push(claim(journey, "10-claim.yaml", None));
    }
    steps.extend(stops.then(|| stop(journey)));
    match journey.wanted.copy {
        CopyBy::Job => steps.push(copy_files(journey)),
        CopyBy::Snapshot => {
            let name = new_claim::name_of(journey.name, "from");
            steps.push(take_snapshot(journey, &name));
            steps.push(claim(journey, "20-claim.yaml", Some(&name)));
        }
        CopyBy::Nothing => {}
    }
    if journey.subject.is_used() {
        steps.push(change(journey));
        steps.extend(stops.then(|| start(journey)));
        steps.push(check(journey));
        steps.push(hand_over(journey));
        steps.extend(grow(journey));
    }
    steps.push(clean_up(journey));
    steps
}

/// Keeps whoever writes the manifests from undoing what comes next.
fn hold_back(journey: &Journey<'_>) -> Step {
    let consequence = if journey.copies() {
        "it would start the application in the middle of the copy"
    } else {
        "it would bring the old claim back"
    };
    let mut actions = Vec::new();
    let mut text = String::new();
    for delivery in journey.deliveries {
        if let Some([pause, _]) = delivery.pause() {
            actions.push(journey.kubectl(&pause));
        } else {
            text += &format!(
                "Hold back upgrades of {} until this is done: one in between brings the old claim back. ",
                delivery.shown()
            );
        }
    }
    if journey.deliveries.is_empty() {
        text += &format!(
            "Nothing on these objects says that Argo CD, Flux or Helm writes them. If something does, suspend it now: {consequence}."
        );
    } else if !actions.is_empty() {
        text += &format!(
            "Otherwise {consequence}. What is above it (an Application of Applications, a parent Kustomization) may set it to work again; suspend that too."
        );
    }
    for name in journey.scaled_objects() {
        actions.push(journey.run(&[
            "annotate",
            &format!("scaledobjects.keda.sh/{name}"),
            &format!("{PAUSED}=0"),
            "--overwrite",
        ]));
        text += &format!(
            " KEDA scales from 0 up, and is paused at 0: with its ScaledObject {name}, the application stops here already."
        );
    }
    let stops = journey.copies() && journey.scaled_objects().next().is_some();
    Step {
        title: "Suspend what writes the manifests".to_owned(),
        blocks: if stops {
            format!("{STANDS_STILL} from here on.")
        } else {
            RUNS.to_owned()
        },
        text: text.trim().to_owned(),
        actions,
        then: String::new(),
    }
}

/// Keeps the data whatever happens to the claim.
fn keep_volume(journey: &Journey<'_>) -> Option<Step> {
    let name = journey.subject.volume_name();
    if name.is_empty() || !journey.copies() {
        return None;
    }
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    Some(Step {
        title: "Keep the old volume, whatever happens to its claim".to_owned(),
        blocks: RUNS.to_owned(),
        text: "From now on the data outlives the claim, should a tool prune it. It takes the right to change PersistentVolumes; without it, ask whoever has it.".to_owned(),
        actions: vec![journey.kubectl(&[
            "patch",
            &format!("pv/{name}"),
            "--type=merge",
            "-p",
            &retain.to_string(),
        ])],
        then: String::new(),
    })
}

/// The new claim.
fn claim(journey: &Journey<'_>, file: &str, snapshot: Option<&str>) -> Step {
    let Journey {
        subject,
        target,
        wanted,
        name,
        ..
    } = journey;
    let object = new_claim::manifest(name, subject, target, *wanted, snapshot);
    let mut actions = vec![Journey::apply(file, object)];
    let mut then = if target.binds_late {
        format!(
            "It is Pending until the first pod uses it, because class {} waits for that.",
            target.class
        )
    } else {
        actions.push(journey.run(&[
            "wait",
            "--for=jsonpath={.status.phase}=Bound",
            "--timeout=10m",
            &format!("pvc/{name}"),
        ]));
        String::new()
    };
    if target.unproven {
        then += &format!(
            " Nobody has verified that class {} gives {}. If the claim stays Pending, `kubectl describe` says why, and nothing has happened so far but that it is there.",
            target.class, wanted.mode
        );
    }
    let stands_still = snapshot.is_some() && journey.subject.is_used();
    Step {
        title: "Make the new claim".to_owned(),
        blocks: if stands_still {
            format!("{STANDS_STILL}: as long as the driver takes to restore.")
        } else {
            RUNS.to_owned()
        },
        text: String::new(),
        actions,
        then: then.trim().to_owned(),
    }
}

/// Stops everything that may write to the old volume.
fn stop(journey: &Journey<'_>) -> Step {
    let mut actions = stop_actions(journey);
    actions.push(journey.run(&["describe", &format!("pvc/{}", journey.wanted.claim)]));
    let mut text = strangers(journey, "Stop");
    if journey.autoscalers().next().is_some() && journey.scaled_objects().next().is_none() {
        text += " A HorizontalPodAutoscaler leaves a workload at 0 alone, so that it needs no change here.";
    }
    Step {
        title: "Stop what uses the old claim".to_owned(),
        blocks: format!("{STANDS_STILL} from here on."),
        text: text.trim().to_owned(),
        actions,
        then: "The line `Used By` must say `<none>`. A pod that is still there may write, and what it writes may not be copied.".to_owned(),
    }
}

fn stop_actions(journey: &Journey<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = journey
        .running()
        .map(|user| journey.run(&user.stop()))
        .collect();
    for pods in journey.running().filter_map(User::pods) {
        actions.push(journey.run(&["wait", "--for=delete", "pod", "-l", &pods, "--timeout=10m"]));
    }
    actions
}

/// What there is to do about users that are not known here.
fn strangers(journey: &Journey<'_>, verb: &str) -> String {
    let shown: Vec<String> = journey
        .subject
        .strangers
        .iter()
        .map(super::users::Stranger::shown)
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    format!(
        "{verb} {} too, by the means of its own controller.",
        shown.join(" and ")
    )
}

/// The copy, and its proof.
fn copy_files(journey: &Journey<'_>) -> Step {
    let Journey {
        subject,
        target,
        wanted,
        ..
    } = journey;
    let name = journey.copy_name();
    let job = format!("job/{name}");
    let object = copy::manifest(&name, journey.name, subject, target, *wanted);
    let mut text = match copy::node(subject) {
        Some(node) => format!(
            "The Job runs on node {}, which has the old volume.",
            node.name
        ),
        None => "The scheduler chooses a node that can have both volumes.".to_owned(),
    };
    text += " It mounts the old volume read-only, copies with rsync, then reads both sides again and compares checksums. It writes over nothing that it did not copy, so that it may be run again.";
    if wanted.image == copy::DEFAULT_IMAGE {
        text += &format!(
            " Its image, {}, gets rsync from the package repository of its distribution; where the cluster does not reach that, name an image with rsync in it by --image.",
            wanted.image
        );
    }
    text += &restricted(journey);
    let duration = format!(
        "at 100 MB/s a full volume takes {}, the comparison included; many small files take longer",
        copy_takes(subject)
    );
    Step {
        title: "Copy the files".to_owned(),
        blocks: if subject.is_used() {
            format!("{STANDS_STILL}: {duration}.")
        } else {
            format!("{RUNS} It takes its time: {duration}.")
        },
        text,
        actions: vec![
            Journey::apply("20-copy.yaml", object),
            journey.run(&["wait", "--for=condition=Complete", "--timeout=24h", &job]),
            journey.run(&["logs", &job]),
        ],
        then: format!(
            "The last line must say that all is copied. While it runs, `kubectl -n {} logs -f {job}` in another window shows what it does, and why if it fails; then delete the Job, put that right, and apply it again, or go back.",
            wanted.namespace
        ),
    }
}

/// Whether the namespace refuses the Job.
fn restricted(journey: &Journey<'_>) -> String {
    let view = journey.facts.cluster.objects.view;
    let namespace = view.namespace(journey.wanted.namespace).found();
    let level = namespace.and_then(|namespace| {
        namespace
            .metadata
            .labels
            .get("pod-security.kubernetes.io/enforce")
    });
    if level == Some("restricted") {
        format!(
            " Namespace {} enforces the Pod Security Standard restricted, which refuses a Job that runs as root, and only root can give files to their owners: have baseline allowed there for the time of the copy.",
            journey.wanted.namespace
        )
    } else {
        String::new()
    }
}

fn take_snapshot(journey: &Journey<'_>, name: &str) -> Step {
    let object = snapshot::manifest(name, journey.snapshot_class, journey.wanted);
    let text = match journey.snapshot_class {
        Some(class) => format!("By VolumeSnapshotClass {class}, of the same driver."),
        None => "The VolumeSnapshotClasses could not be read: the default one of the driver makes it, if there is one.".to_owned(),
    };
    let blocks = if journey.subject.is_used() {
        format!(
            "{STANDS_STILL}: seconds with most drivers, longer where they copy to another place first."
        )
    } else {
        RUNS.to_owned()
    };
    Step {
        title: "Take a snapshot of the old volume".to_owned(),
        blocks,
        text,
        actions: vec![
            Journey::apply("10-snapshot.yaml", object),
            journey.run(&[
                "wait",
                "--for=jsonpath={.status.readyToUse}=true",
                "--timeout=1h",
                &format!("volumesnapshots.snapshot.storage.k8s.io/{name}"),
            ]),
        ],
        then: String::new(),
    }
}

/// The new claim in the place of the old one.
fn change(journey: &Journey<'_>) -> Step {
    let stops = journey.copies();
    Step {
        title: "Let the workloads use the new claim".to_owned(),
        blocks: match (stops, journey.running().any(User::recreates)) {
            (true, _) => format!("{STANDS_STILL}: seconds."),
            (false, true) => format!("{STANDS_STILL} for one restart: its strategy is Recreate."),
            (false, false) => {
                "Pods are replaced one after the other, as in every rollout.".to_owned()
            }
        },
        text: unchangeable(journey),
        actions: change_actions(journey, journey.wanted.claim, journey.name),
        then: String::new(),
    }
}

fn change_actions(journey: &Journey<'_>, from: &str, to: &str) -> Vec<Action> {
    let users = journey.subject.users.iter();
    users
        .filter(|user| user.can_change())
        .map(|user| journey.run(&user.change(from, to)))
        .collect()
}

/// What there is to do about users whose pods cannot be given another claim.
fn unchangeable(journey: &Journey<'_>) -> String {
    let mut text = strangers(journey, "Change the claim of");
    let users = journey.subject.users.iter();
    for user in users.filter(|user| !user.can_change()) {
        text += &format!(
            " {} cannot be changed: create it anew, with claim {} in its manifest.",
            user.shown(),
            journey.name
        );
    }
    text.trim().to_owned()
}

fn start(journey: &Journey<'_>) -> Step {
    let mut text = strangers(journey, "Start");
    if journey.subject.users.iter().any(|user| !user.runs()) {
        text += " What had no pods before has none now.";
    }
    Step {
        title: "Start it again".to_owned(),
        blocks: format!("{STANDS_STILL} until its pods are ready, as after every start."),
        text: text.trim().to_owned(),
        actions: start_actions(journey),
        then: String::new(),
    }
}

fn start_actions(journey: &Journey<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = journey
        .running()
        .filter_map(User::start)
        .map(|arguments| journey.run(&arguments))
        .collect();
    for name in journey.scaled_objects() {
        let target = format!("scaledobjects.keda.sh/{name}");
        actions.push(journey.run(&["annotate", &target, &format!("{PAUSED}-")]));
    }
    actions
}

fn check(journey: &Journey<'_>) -> Step {
    let mut actions = Vec::new();
    for user in journey.running() {
        if matches!(
            user.kind(),
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet
        ) {
            actions.push(journey.run(&["rollout", "status", &user.target(), "--timeout=10m"]));
        }
    }
    let claim = format!("pvc/{}", journey.name);
    actions.push(journey.run(&["get", &claim]));
    actions.push(journey.run(&["describe", &claim]));
    Step {
        title: "Check that it worked".to_owned(),
        blocks: RUNS.to_owned(),
        text: String::new(),
        actions,
        then: format!(
            "The claim must be Bound with access mode {}, and `Used By` must name the new pods. Then look at the application itself: read something old, write something new, and see that it is there after a restart.",
            journey.wanted.mode.short()
        ),
    }
}

/// The same in the place where the manifests are.
fn hand_over(journey: &Journey<'_>) -> Step {
    let mut actions = Vec::new();
    for delivery in journey.deliveries {
        if let Some([_, resume]) = delivery.pause() {
            actions.push(journey.kubectl(&resume));
        }
    }
    let shown: Vec<String> = journey.deliveries.iter().map(Delivery::shown).collect();
    let by = if shown.is_empty() {
        "where the manifests are".to_owned()
    } else {
        format!("where {} takes the manifests from", shown.join(" and "))
    };
    let resume = if actions.is_empty() {
        "Then let the next delivery come."
    } else {
        "Only then resume:"
    };
    Step {
        title: "Write it into the manifests, and resume".to_owned(),
        blocks: RUNS.to_owned(),
        text: format!(
            "Add the new claim {by}, change claimName from {} to {} there, and commit both. Leave the old claim in: what is taken out may be pruned, and with it the way back. {resume}",
            journey.wanted.claim, journey.name
        ),
        actions,
        then: format!(
            "After the first sync, the workloads must still name claim {}.",
            journey.name
        ),
    }
}

/// More pods for autoscalers that were held at one, and rollouts for Deployments that were
/// held from them; or, `back`, the same as it was.
fn growth(journey: &Journey<'_>, back: bool) -> Vec<Action> {
    let mut actions = Vec::new();
    for autoscaler in journey.autoscalers() {
        if autoscaler.spec.max_replicas == 1 {
            let most = if back { 1 } else { 3 };
            let patch = json!({"spec": {"maxReplicas": most}}).to_string();
            let target = format!("hpa/{}", autoscaler.metadata.name);
            actions.push(journey.run(&["patch", &target, "--type=merge", "-p", &patch]));
        }
    }
    for user in journey.subject.users.iter().filter(|user| user.recreates()) {
        let strategy = if back { "Recreate" } else { "RollingUpdate" };
        let patch = json!([
            {"op": "replace", "path": "/spec/strategy", "value": {"type": strategy}},
        ]);
        actions.push(journey.run(&user.patch("json", &patch)));
    }
    actions
}

/// What the new mode makes possible.
fn grow(journey: &Journey<'_>) -> Option<Step> {
    let actions = growth(journey, false);
    let limits: Vec<String> = journey
        .autoscalers()
        .filter(|it| it.spec.max_replicas > 1)
        .map(|it| {
            format!(
                "HorizontalPodAutoscaler {} may ask for up to {} pods",
                it.metadata.name, it.spec.max_replicas
            )
        })
        .collect();
    if actions.is_empty() && limits.is_empty() {
        return None;
    }
    let mut text = "Only if several pods may write at the same time.".to_owned();
    if !limits.is_empty() {
        text += &format!(" {}: that works now.", limits.join(", "));
    }
    if !actions.is_empty() {
        text += " Rollouts without a standstill, and more pods than one, in the manifests too:";
    }
    Some(Step {
        title: "Use what is possible now".to_owned(),
        blocks: RUNS.to_owned(),
        text,
        actions,
        then: String::new(),
    })
}

fn clean_up(journey: &Journey<'_>) -> Step {
    let mut actions = Vec::new();
    match journey.wanted.copy {
        CopyBy::Job => {
            actions.push(journey.run(&["delete", &format!("job/{}", journey.copy_name())]));
        }
        CopyBy::Snapshot => {
            let name = new_claim::name_of(journey.name, "from");
            let target = format!("volumesnapshots.snapshot.storage.k8s.io/{name}");
            actions.push(journey.run(&["delete", &target]));
        }
        CopyBy::Nothing => {}
    }
    actions.push(journey.run(&["delete", &format!("pvc/{}", journey.wanted.claim)]));
    let volume = journey.subject.volume_name();
    let then = if volume.is_empty() || !journey.copies() {
        String::new()
    } else {
        format!(
            "Volume {volume} is Released then and still there, with its disk behind it. Delete both when nobody needs them: with `{} delete pv/{volume}`, and the disk where it is paid for.",
            journey.facts.cluster.kubectl
        )
    };
    Step {
        title: "Clean up, days later".to_owned(),
        blocks: RUNS.to_owned(),
        text: "When you are sure, and the new volume is in the backups. With the old claim goes the way back; take it out of the manifests first.".to_owned(),
        actions,
        then,
    }
}

/// The way back.
pub(super) fn back(journey: &Journey<'_>) -> Step {
    let mut actions = Vec::new();
    if journey.copies() {
        actions.extend(stop_actions(journey));
    }
    actions.extend(change_actions(journey, journey.name, journey.wanted.claim));
    actions.extend(growth(journey, true));
    if journey.copies() {
        actions.extend(start_actions(journey));
    }
    for delivery in journey.deliveries {
        if let Some([_, resume]) = delivery.pause() {
            actions.push(journey.kubectl(&resume));
        }
    }
    Step {
        title: "How to go back".to_owned(),
        blocks: format!("{STANDS_STILL} for one restart."),
        text: "At any step, as long as the old claim is there: the old volume has everything up to the stop. What was written since is in the new one only. If the manifests were changed, change them back first. Where the workloads were not changed yet, their patches fail and harm nothing.".to_owned(),
        actions,
        then: format!(
            "Before another attempt, delete claim {}: nothing is copied over files that are there.",
            journey.name
        ),
    }
}

/// The pod specification in the document of a workload.
pub(super) fn pod_spec<'a>(document: &'a Value, kind: &str) -> Option<&'a Value> {
    let kind = WorkloadKind::from_name(kind)?;
    document.pointer(&format!("/{}", kind.pod_spec_path().replace('.', "/")))
}
