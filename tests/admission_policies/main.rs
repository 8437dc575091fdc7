//! The policies in the API server: what they refuse while no webhook is asked, that the
//! webhook would refuse it too, and that no odd object makes an expression fail.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "in a test, the panic and its message are the report"
)]

mod faults;
#[path = "../harness/mod.rs"]
mod harness;
mod objects;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use axum::http::{HeaderValue, Method};
use harness::shorthand::object;
use harness::{
    ControlPlane, Guard, GuardOptions, Needs, Output, WebhookOptions, asking, until, wait_until,
};
use objects::{Lot, draw};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// Claims of every sort. `local` stays on one node, `share` does not attach, `lost` is of a
/// class that nobody knows.
const CLAIMS: [(&str, &str, &str); 6] = [
    ("data", "ReadWriteOnce", "disk"),
    ("logs", "ReadWriteOnce", "disk"),
    ("lock", "ReadWriteOncePod", "disk"),
    ("share", "ReadWriteMany", "share"),
    ("local", "ReadWriteOnce", "local"),
    ("lost", "ReadWriteOnce", "nobody"),
];

/// Whether this minor has mutating policies (1.36 and newer), which can be read from a folder
/// there too.
fn has_repair() -> bool {
    let minor = harness::programs::minor();
    let number = minor.split('.').nth(1).and_then(|it| it.parse().ok());
    number.is_some_and(|number: u32| number >= 36)
}

struct World {
    plane: &'static ControlPlane,
    guard: Guard,
    namespace: String,
}

fn world() -> Option<&'static World> {
    static WORLD: OnceLock<Option<World>> = OnceLock::new();
    WORLD.get_or_init(|| World::of("policies")).as_ref()
}

/// The same for tests that store workloads, which share claims with those of other tests.
fn world_of_workloads() -> Option<&'static World> {
    static WORLD: OnceLock<Option<World>> = OnceLock::new();
    WORLD.get_or_init(|| World::of("workloads")).as_ref()
}

/// Applies the policies, changed so that an expression that fails shows.
fn install(plane: &ControlPlane) {
    let component = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/components");
    let repair = has_repair().then_some("admission-policies-repair/repair.yaml");
    let files = ["crd.yaml", "policies.yaml"].map(|it| format!("admission-policies/{it}"));
    for file in files.into_iter().chain(repair.map(str::to_owned)) {
        let text = fs::read_to_string(component.join(file)).unwrap();
        let text = text.replace("failurePolicy: Ignore", "failurePolicy: Fail");
        plane.kubectl(&["apply", "-f", "-"], Some(&text)).success();
    }
}

impl World {
    /// A namespace whose name begins so, on the control plane that all tests share.
    fn of(name: &str) -> Option<Self> {
        // Two that apply the definition at once would both create it.
        static INSTALLED: Once = Once::new();
        let plane = harness::require_control_plane(Needs::ApiServer)?;
        INSTALLED.call_once(|| install(plane));
        let namespace = plane.namespace(name);
        plane.apply(&namespace, &cluster());
        // A busy API server may not confirm a denial in time.
        let options = GuardOptions::default().with(&["--admission-policies", "--stale=deny"]);
        let guard = plane.guard(name, &options);
        let world = Self {
            plane,
            guard,
            namespace,
        };
        world.until_facts(|spec| is_of(&spec["claims"]["data"], "OneNode"));
        Some(world)
    }

    /// The facts that the guard has written.
    fn facts(&self) -> Option<Value> {
        let found = self.kubectl(&["get", "volumefacts", "volumes", "-o=json"], None);
        (found.status == 0).then(|| serde_json::from_str(&found.stdout).unwrap())
    }

    fn until_facts(&self, accept: impl Fn(&Value) -> bool) {
        until("the guard's facts", SOON, || match self.facts() {
            Some(object) if accept(&object["spec"]) => Ok(()),
            other => Err(format!("{other:?}\n{}", self.guard.program.log_tail())),
        });
        // The API server reads the facts from a watch of its own.
        until("the policies", SOON, || {
            match self.policies_say(&objects::deployment(&json!({}), &["data"])) {
                Some(_) => Ok(()),
                None => Err("nothing is refused".to_owned()),
            }
        });
    }

    /// kubectl in the namespace.
    fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let arguments = [&["-n", &self.namespace], arguments].concat();
        self.plane.kubectl(&arguments, stdin)
    }

    /// Where objects of that kind are.
    fn path(&self, object: &Value) -> String {
        let (group, version, kind) = kind_of(object);
        let plural = format!("{}s", kind.to_lowercase());
        format!(
            "/apis/{group}/{version}/namespaces/{}/{plural}",
            self.namespace
        )
    }

    /// Stores the object as one whom the policies let do it; `None` where it is invalid.
    fn store(&self, object: &Value) -> Option<Value> {
        let mut request = asking::request(Method::POST, &self.path(object), object);
        for (name, value) in [
            ("Impersonate-User", "system:kube-controller-manager"),
            ("Impersonate-Group", "system:masters"),
        ] {
            let value = HeaderValue::from_static(value);
            request.headers_mut().insert(name, value);
        }
        let stored = self.plane.block_on(self.plane.client().request(request));
        stored.ok()
    }

    /// Why the API server refuses to create the object, where it does. Nothing is stored.
    fn policies_say(&self, object: &Value) -> Option<String> {
        self.said(Method::POST, &self.path(object), object)
    }

    /// The same for an update.
    fn policies_say_of_update(&self, object: &Value) -> Option<String> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", self.path(object));
        self.said(Method::PUT, &path, object)
    }

    fn said(&self, method: Method, path: &str, object: &Value) -> Option<String> {
        match self
            .plane
            .send(method, &format!("{path}?dryRun=All"), object)
        {
            Ok(()) => None,
            Err(kube::Error::Api(status))
                if status.message.contains("ValidatingAdmissionPolicy") =>
            {
                Some(status.message.clone())
            }
            // Not a matter of ours: the object is invalid.
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => None,
            Err(error) => panic!("{error}: {object:?}"),
        }
    }

    /// Whether the guard's webhook would refuse to create the object.
    fn webhook_refuses(&self, object: &Value) -> Option<String> {
        self.webhook_refuses_update(object, None)
    }

    /// The same for an update of `old`.
    fn webhook_refuses_update(&self, object: &Value, old: Option<&Value>) -> Option<String> {
        let (group, version, kind) = kind_of(object);
        let mut named = object.clone();
        named["metadata"]["namespace"] = json!(self.namespace);
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "7d6a3f0e-52f1-4b0c-9a53-1f6f6f1d2c11",
                "kind": {"group": group, "version": version, "kind": kind},
                "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
                "name": object["metadata"]["name"],
                "namespace": self.namespace,
                "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
                "userInfo": {"username": "alice"},
                "object": named,
                "oldObject": old,
            },
        });
        let url = format!("{}/validate?timeout=10s", self.guard.url);
        let asked = self.plane.http().post(url).json(&review);
        let answer: Value = self.plane.block_on(async {
            let answer = asked.send().await.unwrap();
            answer.json().await.unwrap()
        });
        let response = &answer["response"];
        // Nor may it say in time whether an update is a rollback; then nothing is decided.
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let mut undecided = warnings.filter_map(Value::as_str);
        if let Some(warning) = undecided.find(|it| it.contains("may be a rollback")) {
            return Some(warning.to_owned());
        }
        (response["allowed"] == false).then(|| {
            response["status"]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
    }
}

/// Whether the claim has a constraint of that sort.
fn is_of(constraint: &Value, sort: &str) -> bool {
    constraint.as_str().is_some_and(|it| it.starts_with(sort))
}

/// Group, version and kind of an object that has a group.
fn kind_of(object: &Value) -> (&str, &str, &str) {
    let text = |field: &str| object[field].as_str().unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap();
    (group, version, text("kind"))
}

/// Nodes, classes, drivers and [`CLAIMS`].
fn cluster() -> String {
    let class = |name: &str, provisioner: &str, binding: &str| {
        let with = json!({"provisioner": provisioner, "volumeBindingMode": binding});
        json!({"kind": "StorageClass", "name": name, "with": with})
    };
    let driver = |name: &str, attached: bool| json!({"kind": "CSIDriver", "name": name, "with": {"spec": {"attachRequired": attached}}});
    let node = |name: &str| json!({"kind": "Node", "name": name, "labels": {"kubernetes.io/hostname": name}});
    let claims = CLAIMS.map(|(name, mode, class)| {
        let spec = json!({"accessModes": [mode], "storageClassName": class});
        json!({"kind": "PersistentVolumeClaim", "name": name, "with": {"spec": spec}})
    });
    let others = [
        class("disk", "ebs.csi.aws.com", "Immediate"),
        class("share", "efs.csi.aws.com", "Immediate"),
        class("local", "rancher.io/local-path", "WaitForFirstConsumer"),
        driver("ebs.csi.aws.com", true),
        driver("efs.csi.aws.com", false),
        node("node-a"),
        node("node-b"),
        node("node-c"),
    ];
    let items: Vec<Value> = others.into_iter().chain(claims).map(object).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn facts_say_what_is_certain() {
    let Some(world) = world() else { return };
    // Another test deletes them meanwhile.
    let facts = wait_until("the facts", SOON, || world.facts().ok_or_else(String::new));
    let spec = facts.unwrap()["spec"].clone();
    let claims: BTreeMap<String, String> = serde_json::from_value(spec["claims"].clone()).unwrap();
    let sorts = claims.iter().map(|(claim, constraint)| {
        let (sort, _) = constraint.split_once('-').unwrap_or((constraint, ""));
        (claim.as_str(), sort)
    });
    let expected = [
        ("data", "OneNode"),
        ("lock", "OnePod"),
        ("logs", "OneNode"),
        ("share", "Any"),
    ];
    assert_eq!(sorts.collect::<Vec<_>>(), expected);
    let attached = &spec["constraints"][&claims["data"]];
    let (is, nodes) = (
        "is not bound yet and will be ReadWriteOnce (ebs.csi.aws.com)",
        "3 nodes are eligible",
    );
    assert_eq!(
        (&attached["is"], &attached["nodes"]),
        (&json!(is), &json!(nodes))
    );
    assert_eq!(
        spec["denied"]["Deployment"],
        json!([
            "rolling-update-overlap",
            "replicas-share-volume",
            "single-pod-volume",
        ])
    );
}

/// What a policy refuses the webhook refuses as well; of what the webhook refuses for a
/// reason that is compiled, nearly all.
#[test]
fn a_policy_refuses_nothing_that_the_webhook_allows() {
    let Some(world) = world() else { return };
    let mut lot = Lot::new(7);
    let mut refused = Refused::default();
    for _ in 0..1200 {
        let object = draw(&mut lot);
        let webhook = world.webhook_refuses(&object);
        let policy = world.policies_say(&object);
        refused.count(policy.as_deref(), webhook.as_deref(), &object);
    }
    refused.judge(1200, 140);
}

/// What policies and the webhook have refused.
#[derive(Default)]
struct Refused {
    by_policies: usize,
    by_webhook: usize,
    /// What a policy has refused alone.
    wrong: Vec<String>,
}

impl Refused {
    fn count(&mut self, policy: Option<&str>, webhook: Option<&str>, object: &Value) {
        self.by_policies += usize::from(policy.is_some());
        self.by_webhook += usize::from(webhook.is_some());
        if policy.is_some() && webhook.is_none() {
            self.wrong.push(format!("{policy:?}: {object}"));
        }
    }

    /// Of so many, the policies refuse at least that many, and none that the webhook allows.
    fn judge(&self, of: usize, least: usize) {
        let Self {
            by_policies,
            by_webhook,
            wrong,
        } = self;
        println!("Of {of} the webhook refuses {by_webhook}, the policies {by_policies}.");
        let first = &wrong[..wrong.len().min(5)];
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), first.join("\n"));
        assert!(*by_policies >= least, "{by_policies} of {by_webhook}");
    }
}

/// The same for updates: what was stored before, and the object that is to take its place.
#[test]
fn a_policy_refuses_no_update_that_the_webhook_allows() {
    let world = harness::or_skip!(world_of_workloads());
    let mut lot = Lot::new(23);
    let mut refused = Refused::default();
    for number in 0..250 {
        let [mut old, mut new] = std::array::from_fn(|_| draw(&mut lot));
        new["kind"] = old["kind"].clone();
        if let Some(spec) = new["spec"].as_object_mut() {
            spec.remove("serviceName");
            if old["kind"] == "StatefulSet" {
                spec.insert("serviceName".to_owned(), json!("web"));
            }
            if old["kind"] != "Deployment" {
                spec.remove("strategy");
            }
        }
        if number % 2 == 0 {
            // Many changes leave the pods alone.
            new["spec"]["template"] = old["spec"]["template"].clone();
        }
        for object in [&mut old, &mut new] {
            object["metadata"]["name"] = json!(format!("update-{number}"));
        }
        let Some(stored) = world.store(&old) else {
            continue;
        };
        let policy = world.policies_say_of_update(&new);
        let webhook = world.webhook_refuses_update(&new, Some(&stored));
        let objects = json!([old, new]);
        refused.count(policy.as_deref(), webhook.as_deref(), &objects);
    }
    refused.judge(250, 25);
}

/// A way back to a revision whose pods run is left to the webhook, which knows revisions.
#[test]
fn a_changed_template_is_refused_where_it_is_no_way_back() {
    let world = harness::or_skip!(world_of_workloads());
    let mut object = objects::deployment(&json!({}), &["data"]);
    object["metadata"]["name"] = json!("rolled");
    world.store(&object).unwrap();
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"j"}]}}}}"#;
    let patch = |patch: &str, more: &[&str]| {
        let begin = ["patch", "deployment/rolled", "--type=strategic", "-p"];
        world.kubectl(&[&begin[..], &[patch], more].concat(), None)
    };
    let refused = |what: &str, expected: bool| {
        let output = patch(image, &["--dry-run=server"]);
        assert_eq!(
            output.stderr.contains("rolling-update-overlap"),
            expected,
            "{what}: {output:?}"
        );
    };
    refused("there was never another revision", true);
    patch(r#"{"spec":{"minReadySeconds":1}}"#, &[]).success();
    refused("nothing is known of its pods", false);
    for (what, status, expected) in [
        ("all pods are of this revision", [2, 1], true),
        ("a pod is of another one", [2, 2], false),
        ("the status is older", [1, 1], false),
    ] {
        let [seen, replicas] = status;
        let status = json!({"status": {"observedGeneration": seen, "replicas": replicas, "updatedReplicas": 1}});
        patch(&status.to_string(), &["--subresource=status"]).success();
        refused(what, expected);
    }
}

/// Deployments with very long lists, up to what etcd takes. The policies judge as many volumes,
/// containers and mounts as cost less than the API server allows (1,000,000 for an expression), and
/// leave the others to the webhook.
#[test]
fn the_largest_legal_objects_are_judged_or_left_to_the_webhook() {
    let Some(world) = world() else { return };
    for (claims, containers, mounts, is_judged) in [
        (1, 1, 1, true),
        (100, 10, 100, true),
        (800, 1, 800, true),
        (800, 10, 800, true),
        (1, 100, 1, true),
        (801, 1, 801, false),
        (6400, 1, 6400, false),
        (1, 101, 1, false),
        (1, 10_000, 1, false),
        (1, 1, 801, false),
        (1, 1, 20_000, false),
    ] {
        let mut object = objects::deployment(&json!({}), &vec!["data"; claims]);
        let pod = &mut object["spec"]["template"]["spec"];
        let mut container = pod["containers"][0].clone();
        let volumes = container["volumeMounts"].as_array().unwrap();
        let volumes: Vec<Value> = volumes.iter().map(|it| it["name"].clone()).collect();
        let paths = volumes.iter().cycle().take(mounts).enumerate();
        container["volumeMounts"] = paths
            .map(|(at, name)| json!({"name": name, "mountPath": format!("/mnt/{at}")}))
            .collect();
        pod["containers"] = (0..containers)
            .map(|number| {
                let mut container = container.clone();
                container["name"] = json!(format!("app-{number}"));
                container
            })
            .collect();
        assert!(object.to_string().len() < 1_400_000);
        let said = world.policies_say(&object);
        let what = format!("{claims} claims, {containers} containers, {mounts} mounts: {said:?}");
        assert_eq!(said.is_some(), is_judged, "{what}");
        let is_denial =
            |said: &String| said.contains("rolling-update-overlap") && !said.contains("error");
        assert!(said.iter().all(is_denial), "{what}");
    }
}

/// The plain cases, which are nearly all that people write: both refuse the same.
#[test]
fn plain_workloads_are_refused_by_both() {
    let Some(world) = world() else { return };
    for replicas in [1, 2, 5] {
        for strategy in objects::STRATEGIES {
            for claims in [
                &["data"][..],
                &["lock"],
                &["data", "share"],
                &["share"],
                &["data", "logs"],
            ] {
                let strategy: Value = serde_json::from_str(strategy).unwrap();
                let mut spec = json!({"replicas": replicas});
                if !strategy.is_null() {
                    spec["strategy"] = strategy;
                }
                let object = objects::deployment(&spec, claims);
                let (policy, webhook) =
                    (world.policies_say(&object), world.webhook_refuses(&object));
                assert_eq!(
                    policy.is_some(),
                    webhook.is_some(),
                    "{object}\n{policy:?}\n{webhook:?}"
                );
            }
        }
    }
}

/// A policy refuses before the validating webhook is called; by then the mutating one has said
/// which annotations do not count.
#[test]
fn annotations_that_do_not_count_are_named_where_a_policy_refuses_first() {
    let Some(world) = World::of("hints") else {
        return;
    };
    let webhooks = WebhookOptions::new(&world.guard.url, &[&world.namespace]);
    let _registration = world.plane.register_webhooks("hints", &webhooks);
    let ignored = "multi-attach-guard.dev/ignore";
    for (annotations, hint) in [
        (
            json!({ignored: "rolling-update-overlap"}),
            "multi-attach-guard.dev/ignore is ignored: add multi-attach-guard.dev/reason",
        ),
        (
            json!({ignored: "rolling-update-overlpa", "multi-attach-guard.dev/reason": "drained"}),
            "there is no rule \"rolling-update-overlpa\"",
        ),
    ] {
        let mut object = objects::deployment(&json!({}), &["data"]);
        object["metadata"]["annotations"] = annotations;
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        let said = world.kubectl(&arguments, Some(&object.to_string())).stderr;
        assert!(said.contains("ValidatingAdmissionPolicy"), "{said}");
        let hints = said.lines().filter(|it| it.starts_with("Warning: "));
        let named = hints.filter(|it| it.contains(hint)).count();
        assert_eq!(named, 1, "{said}");
    }
}

#[test]
fn odd_objects_make_no_expression_fail() {
    let Some(world) = world() else { return };
    let mut lot = Lot::new(11);
    let mut refused = 0;
    for _ in 0..500 {
        let object = objects::odd(&mut lot);
        if let Some(reason) = world.policies_say(&object) {
            assert!(!reason.contains("error"), "{reason}\n{object}");
            refused += 1;
        }
    }
    assert!(refused > 0);
}

#[test]
fn the_api_server_drops_a_leftover_by_itself() {
    if !has_repair() {
        return;
    }
    let Some(world) = world() else { return };
    let object = objects::deployment(
        &json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}),
        &["share"],
    );
    let text = object.to_string();
    let strategy = "-o=jsonpath={.spec.strategy}";
    let arguments = ["create", "--dry-run=server", strategy, "-f", "-"];
    // The binding is followed by a watch.
    let strategy = wait_until("the repair", SOON, || {
        let created = world.kubectl(&arguments, Some(&text));
        if created.status == 0 {
            Ok(created.stdout)
        } else {
            Err(created.stderr)
        }
    });
    assert_eq!(strategy.unwrap(), r#"{"type":"Recreate"}"#);
}

/// The policy for a manifest directory of the API server works without any object.
#[test]
fn a_manifest_directory_repairs_before_anything_is_installed() {
    if !has_repair() {
        return;
    }
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let folder = tempfile::tempdir().unwrap();
    let printed = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"))
        .args(["policies", "--manifest-dir"])
        .output()
        .unwrap();
    let manifests = folder.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("policies.yaml"), printed.stdout).unwrap();
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{
            "name": "MutatingAdmissionPolicy",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "MutatingAdmissionPolicyConfiguration",
                "staticManifestsDir": manifests,
            },
        }],
    });
    let file = folder.path().join("admission.yaml");
    fs::write(&file, configuration.to_string()).unwrap();
    let options = harness::Options {
        api_server_flags: vec![
            "--feature-gates=ManifestBasedAdmissionControlConfig=true".to_owned(),
            format!("--admission-control-config-file={}", file.display()),
        ],
        ..harness::Options::of(Needs::ApiServer)
    };
    let plane = ControlPlane::start(programs, &options).unwrap();
    let namespace = plane.namespace("static");
    let object = objects::deployment(
        &json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}),
        &["data"],
    );
    let strategy = "-o=jsonpath={.spec.strategy}";
    let arguments = ["create", strategy, "-n", &namespace, "-f", "-"];
    let created = plane
        .kubectl(&arguments, Some(&object.to_string()))
        .success();
    assert_eq!(created.stdout, r#"{"type":"Recreate"}"#);
}
