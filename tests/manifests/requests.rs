//! What the API server asks the guard about, counted by both.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::fencing;
use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::shorthand::{Shorthand, bound_claim, object};
use crate::harness::{self, ControlPlane, Guard, Needs, NodeSpec, Options, Output, seen};
use crate::installed::{DEADLINE, account, guard, register};
use crate::monitoring::OF_THE_API_SERVER;

/// Reviews by the name of the webhook, as the API server counts them, and how many the
/// guard has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LiveLookups {
    pub(crate) by_webhook: BTreeMap<String, u64>,
    answered: u64,
}

impl LiveLookups {
    fn now(plane: &ControlPlane, guard: &Guard) -> Self {
        let exposition = plane.exposition();
        let mut by_webhook = BTreeMap::new();
        let asked = "apiserver_admission_webhook_request_total";
        for (labels, value) in series(&exposition, asked) {
            let name = label(labels, "name").strip_suffix(".multi-attach-guard.dev");
            let kind = label(labels, "type");
            if let Some(name) = name {
                *by_webhook.entry(format!("{name} {kind}")).or_default() += value;
            }
        }
        let answered = guard.count(plane, "multi_attach_guard_reviews_total{");
        Self {
            by_webhook,
            answered,
        }
    }

    fn since(&self, before: &Self) -> Self {
        let mut by_webhook = BTreeMap::new();
        for (name, count) in &self.by_webhook {
            let count = count - before.by_webhook.get(name).unwrap_or(&0);
            if count > 0 {
                by_webhook.insert(name.clone(), count);
            }
        }
        Self {
            by_webhook,
            answered: self.answered - before.answered,
        }
    }
}

fn series<'a>(exposition: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    exposition.lines().filter_map(move |line| {
        let (labels, value) = line
            .strip_prefix(name)?
            .strip_prefix('{')?
            .split_once("} ")?;
        // Counts may be written as 1e+06.
        let value = value.parse::<f64>().ok()?;
        Some((labels, value as u64))
    })
}

fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    let after = labels.split_once(&format!("{name}=\"")).map(|it| it.1);
    after
        .and_then(|it| it.split('"').next())
        .unwrap_or_default()
}

/// A cluster in which rollouts end, with the guard registered as in the manifests.
pub(crate) struct Snapshot {
    pub(crate) plane: ControlPlane,
    pub(crate) guard: Guard,
    pub(crate) namespace: String,
}

impl Snapshot {
    pub(crate) fn start() -> Option<Self> {
        // An account for each controller, as in nearly every cluster.
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
        // With everything switched on, so that what stays away stays away.
        register(&plane, &guard, "fencing");
        Some(Self {
            plane,
            guard,
            namespace,
        })
    }

    fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) {
        self.run(arguments, stdin).success();
    }

    /// What kubectl says in the namespace.
    pub(crate) fn run(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let arguments = [&["-n", &self.namespace], arguments].concat();
        self.plane.kubectl(&arguments, stdin)
    }

    /// What was asked while `act` ran.
    pub(crate) fn asked(&self, act: impl FnOnce()) -> LiveLookups {
        let before = LiveLookups::now(&self.plane, &self.guard);
        act();
        LiveLookups::now(&self.plane, &self.guard).since(&before)
    }

    pub(crate) fn until_rolled_out(&self, name: &str) {
        let (namespace, seconds) = (&self.namespace, DEADLINE.as_secs());
        let status = format!("rollout status deployment/{name} --timeout={seconds}s");
        self.plane.run(&format!("{status} -n {namespace}"));
    }
}

/// A workload of one pod that uses these claims.
pub(crate) fn workload(kind: &str, name: &str, claims: &[&str], with: &Value) -> String {
    let shorthand = json!({
        "kind": kind, "name": name, "replicas": 1, "uses": claims,
        "pod": {"terminationGracePeriodSeconds": 0}, "with": with,
    });
    object(shorthand).to_string()
}

pub(crate) fn counts(expected: &[(&str, u64)]) -> LiveLookups {
    LiveLookups {
        by_webhook: expected
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect(),
        answered: expected.iter().map(|(_, count)| count).sum(),
    }
}

#[test]
fn nothing_is_asked_that_cannot_matter() {
    let cluster = harness::or_skip!(Snapshot::start());
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
    fencing::a_node_is_held_while_it_is_alive(&cluster, &nodes);
    nobody_waits_for_a_guard_that_is_gone(&cluster);
}

/// With `failurePolicy: Ignore` objects pass, and the API server counts them where the
/// alert looks.
fn nobody_waits_for_a_guard_that_is_gone(cluster: &Snapshot) {
    cluster.guard.program.signal("KILL");
    cluster.guard.program.wait(DEADLINE).unwrap();
    let plane = &cluster.plane;
    let namespace = format!("-n={}", cluster.namespace);
    let create = ["create", &namespace, "--dry-run=server", "-f", "-"];
    let manifest = workload("Deployment", "unjudged", &["one"], &json!({}));
    plane.kubectl(&create, Some(&manifest)).success();
    let exposition = plane.exposition();
    let passed: BTreeMap<&str, u64> = series(&exposition, OF_THE_API_SERVER[0])
        .map(|(labels, count)| (label(labels, "type"), count))
        .collect();
    assert_eq!(passed, BTreeMap::from([("admit", 1), ("validating", 1)]));

    // With `Fail` they are refused, which another alert looks at.
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
    let exposition = plane.exposition();
    let mut refused = series(&exposition, OF_THE_API_SERVER[1])
        .map(|(labels, count)| (label(labels, "error_type"), count));
    let unasked = refused.find(|(error, _)| *error == "calling_webhook_error");
    assert_eq!(unasked, Some(("calling_webhook_error", 1)));
}

/// Everything that controllers do in a rollout, until it is over.
fn rollouts(cluster: &Snapshot) {
    let both = |count| [("workloads admit", count), ("workloads validating", count)];
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    for (name, claims, with, expected) in [
        ("plain", &[][..], json!({}), counts(&[])),
        ("stateful", &["one"], recreate, counts(&both(1))),
    ] {
        let manifest = workload("Deployment", name, claims, &with);
        let created = cluster.asked(|| {
            cluster.kubectl(&["create", "-f", "-"], Some(&manifest));
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

/// A request that is sent, and what is asked because of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    what: String,
    #[serde(default = "create")]
    run: String,
    /// Who asks, in place of the administrator.
    r#as: Option<String>,
    object: Option<Shorthand>,
    #[serde(default)]
    asked: Vec<String>,
}

fn create() -> String {
    "create --dry-run=server -f -".to_owned()
}

fn single_requests(cluster: &Snapshot) {
    let requests: Vec<Request> = serde_saphyr::from_str(include_str!("requests.yaml")).unwrap();
    for request in requests {
        let account = request.r#as.map(|account| format!("--as={account}"));
        let account = account
            .iter()
            .flat_map(|it| [it, "--as-group=system:masters"]);
        let arguments: Vec<&str> = request.run.split(' ').chain(account).collect();
        let stdin = request.object.map(|it| it.manifest().to_string());
        let asked = cluster.asked(|| cluster.kubectl(&arguments, stdin.as_deref()));
        let expected: Vec<(&str, u64)> = request.asked.iter().map(|it| (&**it, 1)).collect();
        assert_eq!(asked, counts(&expected), "{}", request.what);
    }
}
