//! The policy that works without the webhook: `standalone.yaml` has the cases.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::SOON;
use crate::harness::output::program;
use crate::harness::shorthand::merge;
use crate::harness::{self, ControlPlane, Namespace, Needs, seen, until};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    before: Option<Template>,
    object: Template,
    says: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    claim: String,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    pod: Value,
    #[serde(default)]
    metadata: Value,
}

impl Template {
    fn manifest(&self, name: &str) -> Value {
        let mount = json!({"name": "data", "mountPath": "/data"});
        let mut object = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "containers": [{"name": "main", "image": "example.com/app", "volumeMounts": [mount]}],
                        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": self.claim}}],
                    },
                },
            },
        });
        for (pointer, changes) in [
            ("/spec", &self.spec),
            ("/spec/template/spec", &self.pod),
            ("/metadata", &self.metadata),
        ] {
            if !changes.is_null() {
                merge(object.pointer_mut(pointer).unwrap(), changes);
            }
        }
        object
    }
}

/// Claims of each mode, and so many more that nobody mounts.
fn claims(more: usize) -> Value {
    let claim = |name: String, modes: &[&str]| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}}});
    let named: [(&str, &[&str]); 4] = [
        ("one", &["ReadWriteOnce"]),
        ("many", &["ReadWriteMany"]),
        ("pod", &["ReadWriteOncePod"]),
        ("once-or-read", &["ReadWriteOnce", "ReadOnlyMany"]),
    ];
    let items: Vec<Value> = named
        .into_iter()
        .map(|(name, modes)| claim(name.to_owned(), modes))
        .chain((0..more).map(|number| claim(format!("other-{number}"), &["ReadWriteOnce"])))
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Applies the policy for one namespace, changed so that a failing expression is visible.
fn install(plane: &ControlPlane, namespace: &Namespace<'_>) {
    let output = program(&["policies", "--standalone", "--deny"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace("failurePolicy: Ignore", "failurePolicy: Fail");
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(objects[1]["spec"]["validationActions"], json!(["Deny", "Audit"]));
    objects[1]["spec"]["matchResources"] = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.to_string()}}});
    for object in objects {
        plane.kubectl(&["apply", "-f", "-"], Some(&object.to_string())).success();
    }
}

#[test]
fn the_standalone_policy_compares_deployments_with_claims() {
    // A server of its own: the other policies of the suite would refuse some objects first.
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    let namespace = Namespace::new(&plane, "standalone");
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("standalone.yaml")).unwrap();
    // As many claims as a large namespace has: each is a parameter of its own.
    namespace.kubectl(&["create", "-f", "-"], Some(&claims(500).to_string())).success();
    for case in &cases {
        if let Some(before) = &case.before {
            let object = before.manifest(&case.name).to_string();
            namespace.kubectl(&["create", "-f", "-"], Some(&object)).success();
        }
    }
    install(&plane, &namespace);
    let asked = |verb: &str, object: &Value| {
        namespace.kubectl(&[verb, "--dry-run=server", "-f", "-"], Some(&object.to_string()))
    };
    until("the standalone policy", SOON, || {
        let output = asked("create", &cases[0].object.manifest("probe"));
        seen(output.status != 0, output)
    });
    let mut wrong = String::new();
    for case in &cases {
        let verb = if case.before.is_some() { "replace" } else { "create" };
        let output = asked(verb, &case.object.manifest(&case.name));
        let is_right = match &case.says {
            None => output.status == 0,
            Some(rule) => {
                output.status != 0 && output.stderr.contains(&format!(": {rule}: Deployment "))
            }
        };
        if !is_right {
            writeln!(wrong, "{}: {output:?}", case.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // The largest object that is judged, and one with too many containers.
    for (containers, is_judged) in [(100, true), (101, false)] {
        let mut object = cases[0].object.manifest("large");
        let pod = &mut object["spec"]["template"]["spec"];
        let container = pod["containers"][0].clone();
        pod["containers"] = (0..containers)
            .map(|number| {
                let mut container = container.clone();
                container["name"] = json!(format!("main-{number}"));
                container
            })
            .collect();
        let output = asked("create", &object);
        assert_eq!(output.status != 0, is_judged, "{containers} containers: {output:?}");
        assert!(!output.stderr.contains("expression"), "{output:?}");
    }
    // Where the guard is installed, the policy leaves every object to it, and comes back after it.
    super::install::account(&plane);
    let fault = cases[0].object.manifest("probe");
    let until_refused = |is_refused: bool| {
        until("an answer that knows of the guard", SOON, || {
            let output = asked("create", &fault);
            seen((output.status != 0) == is_refused, output)
        });
    };
    until_refused(false);
    for case in &cases {
        let verb = if case.before.is_some() { "replace" } else { "create" };
        asked(verb, &case.object.manifest(&case.name)).success();
    }
    plane.kubectl(&["delete", "clusterrolebinding", "multi-attach-guard"], None).success();
    until_refused(true);
}
