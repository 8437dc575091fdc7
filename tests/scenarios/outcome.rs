//! Derives the outcome of a scenario from the observations.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::harness::fake_nodes::ENDS_AFTER;
use crate::harness::unhurried;
use crate::observe::{NotYet, Observer};

/// The outcome of a user's action, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// Everything runs. Pods may have waited while the volume was detached from a node without pods
    /// that use it.
    None,
    /// Everything runs, but a pod had to wait for another one that still used the volume.
    Delay,
    /// A pod cannot start, and no older pod waits to be replaced by it.
    Stuck,
    /// A rollout cannot continue: the new pod waits for the old one, and the old one for the new
    /// one.
    Deadlock,
    /// Two nodes write to one file system. Everything runs.
    #[serde(rename = "data-loss")]
    DataLoss,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Delay => "delay",
            Self::Stuck => "stuck",
            Self::Deadlock => "deadlock",
            Self::DataLoss => "data-loss",
        })
    }
}

/// The observations when a namespace has come to rest.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    /// The outcome.
    pub(crate) outcome: Outcome,
    /// The Multi-Attach events so far.
    pub(crate) multi_attach: Vec<String>,
    /// The objects that still wait, with their reasons. Empty if everything runs.
    pub(crate) waiting: Vec<String>,
}

/// With simulated nodes, an object that waits while nothing changes for this long waits forever.
pub(crate) const QUIET: Duration = Duration::from_secs(12);

/// The same limit for kubelets, which unmount and report at their own pace.
pub(crate) const QUIET_WITH_KUBELETS: Duration = Duration::from_secs(45);

/// A limit that is longer than any scenario takes to come to rest.
const DEADLINE: Duration = Duration::from_secs(300);

/// Waits until everything in `namespace` runs, or nothing changes any more.
///
/// `dead` names the nodes on which no pod can end.
pub(crate) fn rest(
    observer: &Observer,
    namespace: &str,
    dead: &BTreeSet<String>,
    quiet_for: Duration,
) -> Result<Rest, String> {
    let mut last = Vec::new();
    let mut since = Instant::now();
    observer.wait(namespace, DEADLINE, || {
        let quiet_for = unhurried(quiet_for);
        let seen = Seen::now(observer, namespace, dead);
        let digest = seen.digest();
        if digest != last {
            last = digest;
            since = Instant::now();
        }
        let quiet = since.elapsed() >= quiet_for;
        if seen.waiting.is_empty() || (quiet && !seen.undecided) {
            return Ok(seen.verdict());
        }
        Err(NotYet {
            because: seen.waiting.join("; "),
            // An undecided state ends only by a change, so time alone cannot change the answer.
            ask_again_at: (!seen.undecided).then_some(since + quiet_for),
        })
    })
}

/// Waits until everything in `namespace` runs, even if nothing changes for a long time before.
pub(crate) fn healed(
    observer: &Observer,
    namespace: &str,
    dead: &BTreeSet<String>,
    within: Duration,
) -> Result<Rest, String> {
    observer.wait(namespace, within, || {
        let seen = Seen::now(observer, namespace, dead);
        if seen.waiting.is_empty() {
            return Ok(seen.verdict());
        }
        Err(seen.waiting.join("; ").into())
    })
}

/// The state of a namespace at one time.
struct Seen {
    pods: Vec<Arc<Value>>,
    deployments: Vec<Arc<Value>>,
    multi_attach: Vec<String>,
    waiting: Vec<String>,
    /// Whether some component must still act, for example end a pod or bind a claim. The namespace
    /// is not at rest before that, and the quiet time starts only then.
    undecided: bool,
}

impl Seen {
    fn now(observer: &Observer, namespace: &str, dead: &BTreeSet<String>) -> Self {
        let pods = observer.objects(namespace, "Pod");
        let deployments = observer.objects(namespace, "Deployment");
        let claims = observer.objects(namespace, "PersistentVolumeClaim");
        let attachments = observer.objects(namespace, "VolumeAttachment");
        let [multi_attach, refusals] = said_of_volumes(observer, namespace);
        let mut waiting = Vec::new();
        let kinds = ["Deployment", "DaemonSet", "StatefulSet", "ReplicationController", "Job"];
        for kind in kinds {
            for workload in observer.objects(namespace, kind) {
                if !is_complete(kind, &workload) {
                    waiting.push(format!("{kind} {} is not complete", name(&workload)));
                }
            }
        }
        let mut undecided = claims.iter().any(|claim| claim["status"]["phase"] != "Bound")
            || deployments
                .iter()
                .any(|deployment| is_between_revisions(deployment) && !has_given_up(deployment));
        let mut explained = false;
        for pod in &pods {
            let node = text(pod, "/spec/nodeName");
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                waiting.push(format!("pod {} is ending on {node}", name(pod)));
                undecided |= !dead.contains(node);
            } else if !is_ready(pod) && !is_over(pod) {
                // Events from before the volumes were attached do not explain why the pod still
                // waits. A kubelet retries less and less often, up to every two minutes
                // (`maxDurationBeforeRetry` in `pkg/util/goroutinemap/exponentialbackoff`).
                let multi_attach = if has_its_volumes(pod, &claims, &attachments) {
                    &[][..]
                } else {
                    &multi_attach
                };
                let reason = why(pod, &pods, multi_attach, &refusals);
                undecided |= reason.is_none();
                explained |= reason.is_some();
                let words = reason.unwrap_or("nobody has said why");
                waiting.push(format!("pod {} does not run: {words}", name(pod)));
            } else if !is_over(pod) && pod["metadata"]["annotations"][ENDS_AFTER].is_string() {
                undecided = true;
            }
        }
        Self { pods, deployments, multi_attach, waiting, undecided: undecided || !explained }
    }

    /// All values whose change counts as movement. The scheduler's message does not count: it also
    /// changes when nodes of other scenarios come and go.
    fn digest(&self) -> Vec<String> {
        let pods = self.pods.iter().map(|pod| {
            let deleted = &pod["metadata"]["deletionTimestamp"];
            let status = &pod["status"]["phase"];
            let uid = &pod["metadata"]["uid"];
            format!("{uid} {} {deleted} {status} {}", pod["spec"]["nodeName"], is_ready(pod))
        });
        let deployments = self.deployments.iter().map(|deployment| {
            let progressing = condition(deployment, "Progressing");
            format!(
                "{} {:?}",
                deployment["metadata"]["generation"],
                progressing.map(|condition| &condition["reason"])
            )
        });
        pods.chain(deployments)
            .chain(self.multi_attach.iter().cloned())
            .chain([self.undecided.to_string()])
            .collect()
    }

    fn verdict(self) -> Rest {
        let outcome = if self.waiting.is_empty() {
            let waited_for_a_pod = |event: &String| event.contains("already used by pod(s)");
            if self.multi_attach.iter().any(waited_for_a_pod) {
                Outcome::Delay
            } else {
                Outcome::None
            }
        } else if self.deployments.iter().any(|deployment| is_deadlocked(deployment))
            || hangs_between_revisions(&self.pods)
        {
            Outcome::Deadlock
        } else {
            Outcome::Stuck
        };
        Rest { outcome, multi_attach: self.multi_attach, waiting: self.waiting }
    }
}

/// The first words of the attach-detach controller's Multi-Attach events: until Kubernetes 1.36.3,
/// and since 1.36.4.
const MULTI_ATTACH: [&str; 2] = ["Multi-Attach error for volume", "Waiting for detach for volume"];

/// The texts of Events, each with the name of its pod: the attach-detach controller's Multi-Attach
/// events, and the messages about volumes that a kubelet cannot mount or that the driver does not
/// attach.
fn said_of_volumes(observer: &Observer, namespace: &str) -> [Vec<String>; 2] {
    let [mut multi_attach, mut refusals] = [Vec::new(), Vec::new()];
    for event in observer.objects(namespace, "Event") {
        let message = text(&event, "/message");
        let said = format!("{}: {message}", text(&event, "/involvedObject/name"));
        let is_multi_attach = MULTI_ATTACH.iter().any(|start| message.starts_with(start));
        match text(&event, "/reason") {
            "FailedAttachVolume" if is_multi_attach => multi_attach.push(said),
            "FailedAttachVolume" | "FailedMount" => refusals.push(said),
            _ => {}
        }
    }
    [multi_attach, refusals]
}

/// Whether each claim of the pod has a volume that is attached to the pod's node.
fn has_its_volumes(pod: &Value, claims: &[Arc<Value>], attachments: &[Arc<Value>]) -> bool {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut used = volumes
        .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName"))
        .map(|used| claims.iter().find(|claim| claim["metadata"]["name"] == *used))
        .peekable();
    let is_here = |claim: &Arc<Value>| {
        attachments.iter().any(|attachment| {
            attachment["spec"]["nodeName"] == pod["spec"]["nodeName"]
                && attachment["spec"]["source"]["persistentVolumeName"]
                    == claim["spec"]["volumeName"]
                && attachment["status"]["attached"] == true
        })
    };
    used.peek().is_some() && used.all(|claim| claim.is_some_and(is_here))
}

/// Whether the Deployment controller has given up on a rollout while pods of an older revision
/// still exist.
fn is_deadlocked(deployment: &Value) -> bool {
    has_given_up(deployment) && is_between_revisions(deployment)
}

/// Whether a pod of one revision waits while a pod of another one runs. The controllers of
/// DaemonSets and StatefulSets never give up on a rollout.
fn hangs_between_revisions(pods: &[Arc<Value>]) -> bool {
    let revision = |pod: &Value| {
        let owner = pod["metadata"]["ownerReferences"][0]["uid"].clone();
        let hash = pod["metadata"]["labels"]["controller-revision-hash"].clone();
        (!hash.is_null()).then_some((owner, hash))
    };
    let (running, waiting): (Vec<_>, Vec<_>) = pods
        .iter()
        .filter_map(|pod| Some((is_ready(pod), revision(pod)?)))
        .partition(|(ready, _)| *ready);
    waiting.iter().any(|(_, (owner, hash))| {
        let mut others = running.iter().filter(|(_, (other, _))| other == owner);
        others.any(|(_, (_, other))| other != hash)
    })
}

fn has_given_up(deployment: &Value) -> bool {
    condition(deployment, "Progressing").is_some_and(|condition| {
        condition["status"] == "False" && condition["reason"] == "ProgressDeadlineExceeded"
    })
}

fn is_between_revisions(deployment: &Value) -> bool {
    number(deployment, "/status/updatedReplicas") < number(deployment, "/status/replicas")
}

fn is_complete(kind: &str, workload: &Value) -> bool {
    let status = |field: &str| number(workload, &format!("/status/{field}"));
    if kind != "Job" && status("observedGeneration") < number(workload, "/metadata/generation") {
        return false;
    }
    let all = |fields: &[&str], wanted: i64| fields.iter().all(|field| status(field) == wanted);
    let replicas = number(workload, "/spec/replicas");
    match kind {
        "DaemonSet" => {
            all(&["updatedNumberScheduled", "numberAvailable"], status("desiredNumberScheduled"))
        }
        "Job" if workload["spec"]["suspend"] == true => true,
        "Job"
            if condition(workload, "Complete")
                .is_some_and(|condition| condition["status"] == "True") =>
        {
            true
        }
        "Job" => {
            let parallelism = number(workload, "/spec/parallelism");
            let completions = workload["spec"]["completions"].as_i64();
            status("ready") == parallelism.min(completions.unwrap_or(parallelism))
        }
        "ReplicationController" => all(&["replicas", "availableReplicas"], replicas),
        _ => all(&["replicas", "updatedReplicas", "availableReplicas"], replicas),
    }
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition["status"] == "True")
}

fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// The reason that keeps a pod from running, as soon as the attach-detach controller, its kubelet
/// or the scheduler has reported it.
fn why<'a>(
    pod: &'a Value,
    all: &[Arc<Value>],
    multi_attach: &'a [String],
    refusals: &'a [String],
) -> Option<&'a str> {
    fn about<'a>(pod: &Value, mut events: std::slice::Iter<'a, String>) -> Option<&'a str> {
        let own = format!("{}: ", name(pod));
        events.find_map(|event| event.strip_prefix(&own))
    }
    let reason = |user: &Value| about(user, multi_attach.iter());
    // The attach-detach controller reports it once for a volume and a node, to the pods that exist
    // at that time (`reportMultiAttachError` in its reconciler).
    let node = text(pod, "/spec/nodeName");
    let mut others =
        all.iter().filter(|other| !node.is_empty() && text(other, "/spec/nodeName") == node);
    reason(pod)
        .or_else(|| others.find_map(|other| reason(other)))
        .or_else(|| about(pod, refusals.iter()))
        .or_else(|| {
            let refused = condition(pod, "PodScheduled")
                .filter(|condition| condition["status"] == "False")?;
            Some(text(refused, "/message"))
        })
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}
