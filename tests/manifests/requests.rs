//! The requests that the API server sends to the guard, counted by both.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::fencing;
use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::shorthand::{Shorthand, bound_claim, object};
use crate::harness::{self, ControlPlane, Guard, Needs, NodeSpec, Options, Output, seen, sum};
use crate::installed::{DEADLINE, account, guard, register};
use crate::monitoring::OF_THE_API_SERVER;

/// Reviews by the name of the webhook and its kind.
pub(crate) type Asked = BTreeMap<String, u64>;

fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    labels
        .split_once(&format!("{name}=\""))
        .and_then(|(_, after)| after.split('"').next())
        .unwrap_or_default()
}

/// A cluster in which rollouts finish, with the guard registered as in the manifests.
pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) guard: Guard,
    pub(crate) namespace: String,
}

impl Cluster {
    pub(crate) fn start() -> Option<Self> {
        // Each controller has its own account, as in nearly every cluster.
        let own_accounts = "--use-service-account-credentials=true".to_owned();
        let options = Options {
            controller_manager_flags: vec![own_accounts],
            ..Options::of(Needs::Controllers)
        };
        let plane = harness::start_control_plane_with(Needs::Controllers, &options)?;
        account(&plane);
        let namespace = plane.namespace("asked");
        for name in ["one", "two"] {
            for object in bound_claim(&namespace, name, ATTACHING_DRIVER) {
                plane.apply(&namespace, &object.to_string());
            }
        }
        let guard = guard(&plane);
        // With the fencing webhook too: a request that is not sent now is not sent without it
        // either.
        register(&plane, &guard, "fencing");
        Some(Self { plane, guard, namespace })
    }

    /// Runs kubectl in the namespace.
    pub(crate) fn run(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let arguments = [&["-n", &self.namespace], arguments].concat();
        self.plane.kubectl(&arguments, stdin)
    }

    /// The reviews that the API server counted while `act` ran; the guard has answered as many.
    pub(crate) fn asked(&self, act: impl FnOnce()) -> Asked {
        let (before, answered_before) = self.counted();
        act();
        let (mut asked, answered) = self.counted();
        for (name, count) in before {
            *asked.entry(name).or_default() -= count;
        }
        asked.retain(|_, count| *count > 0);
        let sum: u64 = asked.values().sum();
        assert_eq!(sum, answered - answered_before, "{asked:?}");
        asked
    }

    /// The reviews that the API server has sent, and the number that the guard has answered.
    fn counted(&self) -> (Asked, u64) {
        let exposition = self.plane.exposition();
        let metric = "apiserver_admission_webhook_request_total{";
        let mut asked = Asked::new();
        for series in exposition.lines().filter_map(|line| line.strip_prefix(metric)) {
            let (labels, count) = series.split_once("} ").unwrap();
            if let Some(name) = label(labels, "name").strip_suffix(".multi-attach-guard.dev") {
                let kind = label(labels, "type");
                // Counts may be written as 1e+06.
                let count = count.parse::<f64>().unwrap() as u64;
                *asked.entry(format!("{name} {kind}")).or_default() += count;
            }
        }
        let answered = "multi_attach_guard_reviews_total{";
        (asked, self.guard.count(&self.plane, answered))
    }

    pub(crate) fn until_rolled_out(&self, name: &str) {
        let (namespace, seconds) = (&self.namespace, DEADLINE.as_secs());
        let status = format!("rollout status deployment/{name} --timeout={seconds}s");
        self.plane.run(&format!("{status} -n {namespace}"));
    }
}

/// A workload with one pod that uses these claims.
pub(crate) fn workload(kind: &str, name: &str, claims: &[&str], with: &Value) -> String {
    let shorthand = json!({
        "kind": kind, "name": name, "replicas": 1, "uses": claims,
        "pod": {"terminationGracePeriodSeconds": 0}, "with": with,
    });
    object(shorthand).to_string()
}

pub(crate) fn counts(expected: &[(&str, u64)]) -> Asked {
    let owned = |(name, count): &(&str, u64)| ((*name).to_owned(), *count);
    expected.iter().map(owned).collect()
}

#[test]
fn nothing_is_asked_that_cannot_matter() {
    let cluster = harness::or_skip!(Cluster::start());
    let nodes = cluster.plane.fake_nodes();
    let specs = ["asked-a", "asked-b"].map(|name| NodeSpec {
        name: name.to_owned(),
        zone: "zone".to_owned(),
        cpus: 4,
        ..NodeSpec::default()
    });
    nodes.add(&specs);
    rollouts(&cluster);
    single_requests(&cluster);
    fencing::a_node_is_held_while_it_is_alive(&cluster);
    nobody_waits_for_a_guard_that_is_gone(&cluster);
}

/// With `failurePolicy: Ignore` objects pass, and the API server counts them in the metric that the
/// alert reads.
fn nobody_waits_for_a_guard_that_is_gone(cluster: &Cluster) {
    cluster.guard.program.signal("KILL");
    cluster.guard.program.wait(DEADLINE).unwrap();
    let plane = &cluster.plane;
    let namespace = format!("-n={}", cluster.namespace);
    let create = ["create", &namespace, "--dry-run=server", "-f", "-"];
    let manifest = workload("Deployment", "unjudged", &["one"], &json!({}));
    plane.kubectl(&create, Some(&manifest)).success();
    let exposition = plane.exposition();
    let passed = |labels: &[&str]| sum(&exposition, OF_THE_API_SERVER[0], labels);
    assert_eq!(passed(&["type=\"admit\""]), 1);
    assert_eq!(passed(&["type=\"validating\""]), 1);
    assert_eq!(passed(&[]), 2);

    // With `Fail` they are refused, which another alert detects.
    let name = "multi-attach-guard";
    let mut strict = plane.get(&["validatingwebhookconfiguration", name]);
    for webhook in strict["webhooks"].as_array_mut().unwrap() {
        webhook["failurePolicy"] = json!("Fail");
    }
    let replace = ["replace", "-f", "-"];
    plane.kubectl(&replace, Some(&strict.to_string())).success();
    harness::until("objects to be refused", DEADLINE, || {
        let said = plane.kubectl(&create, Some(&manifest));
        seen(said.stderr.contains("failed calling webhook"), said)
    });
    let unasked = ["error_type=\"calling_webhook_error\""];
    let refused = sum(&plane.exposition(), OF_THE_API_SERVER[1], &unasked);
    assert_eq!(refused, 1);
}

/// Counts the reviews of all requests that controllers make in a rollout.
fn rollouts(cluster: &Cluster) {
    let both = |count| [("workloads admit", count), ("workloads validating", count)];
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    for (name, claims, with, expected) in [
        ("plain", &[][..], json!({}), counts(&[])),
        ("stateful", &["one"], recreate, counts(&both(1))),
    ] {
        let manifest = workload("Deployment", name, claims, &with);
        let created = cluster.asked(|| {
            let create = ["create", "-f", "-"];
            cluster.run(&create, Some(&manifest)).success();
            cluster.until_rolled_out(name);
        });
        assert_eq!(created, expected, "{name}, created");
        let rolled = cluster.asked(|| {
            let image = format!("set image deployment/{name} main=example.com/app:2");
            let namespace = &cluster.namespace;
            cluster.plane.run(&format!("{image} -n {namespace}"));
            cluster.until_rolled_out(name);
        });
        assert_eq!(rolled, expected, "{name}, rolled out");
    }
}

/// A request to send, and the webhooks that are called for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    what: String,
    run: Option<String>,
    /// The user who sends the request, instead of the administrator.
    r#as: Option<String>,
    object: Option<Shorthand>,
    #[serde(default)]
    asked: Vec<String>,
}

fn single_requests(cluster: &Cluster) {
    let requests: Vec<Request> = serde_saphyr::from_str(include_str!("requests.yaml")).unwrap();
    for request in requests {
        let account = request.r#as.map(|account| format!("--as={account}"));
        let arguments: Vec<&str> = request
            .run
            .as_deref()
            .unwrap_or("create --dry-run=server -f -")
            .split(' ')
            .chain(account.iter().flat_map(|user| [user, "--as-group=system:masters"]))
            .collect();
        let stdin = request.object.map(|object| object.manifest().to_string());
        let asked = cluster.asked(|| {
            cluster.run(&arguments, stdin.as_deref()).success();
        });
        let expected: Vec<(&str, u64)> = request.asked.iter().map(|entry| (&**entry, 1)).collect();
        assert_eq!(asked, counts(&expected), "{}", request.what);
    }
}
