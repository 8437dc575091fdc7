//! Objects of kinds that are not Kubernetes' own.

use super::*;

const ROLLOUT: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  strategy:
    canary: {}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
";

const TEMPLATE: &str = "\
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: shop}
objects:
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: \"${NAME}-data\"}
  spec: {accessModes: [\"${MODE}\"], storageClassName: gp3}
- apiVersion: apps.openshift.io/v1
  kind: DeploymentConfig
  metadata: {name: \"${NAME}\"}
  spec:
    replicas: ${{COUNT}}
    strategy: {type: Rolling}
    selector: {app: shop}
    template:
      metadata: {labels: {app: shop}}
      spec:
        volumes: [{name: data, persistentVolumeClaim: {claimName: \"${NAME}-data\"}}]
parameters:
- {name: NAME, value: shop}
- {name: MODE, value: ReadWriteOnce}
- {name: COUNT, value: \"1\"}
- {name: PASSWORD, generate: expression, from: \"[a-z]{8}\"}
";

/// Each finding as `rule object line`.
fn reported(files: &[(&str, &str)]) -> Vec<String> {
    let mut all = vec![("class.yaml", CLASS)];
    all.extend_from_slice(files);
    let output = run(&repository(&all), &["check", ".", "--format", "json"]);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reported = findings(&output).into_iter().map(|it| {
        let object = &it["object"];
        format!(
            "{} {} {} {}",
            word(&it["rule"]),
            word(&object["kind"]),
            word(&object["name"]),
            it["line"]
        )
    });
    reported.collect()
}

#[test]
fn a_rollout_is_judged_where_its_strategy_stands() {
    assert_eq!(
        reported(&[("claim.yaml", CLAIM), ("web.yaml", ROLLOUT)]),
        ["rolling-update-overlap Rollout web 7"]
    );
}

#[test]
fn a_rollout_may_take_its_pods_from_a_deployment() {
    let deployment = DEPLOYMENT.replace("replicas: 1", "replicas: 0");
    let rollout = "\
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy: {blueGreen: {activeService: web}}
";
    assert_eq!(
        reported(&[
            ("claim.yaml", CLAIM),
            ("web.yaml", &deployment),
            ("rollout.yaml", rollout)
        ]),
        ["rolling-update-overlap Rollout web 6"]
    );
}

#[test]
fn an_autoscaler_of_keda_scales_to_100_pods_where_it_does_not_say() {
    let deployment = DEPLOYMENT.replace("RollingUpdate", "Recreate");
    let scaled = "\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  triggers: []
";
    assert_eq!(
        reported(&[
            ("claim.yaml", CLAIM),
            ("web.yaml", &deployment),
            ("scaled.yaml", scaled)
        ]),
        ["autoscaler-exceeds-volume ScaledObject web 4"]
    );
}

#[test]
fn objects_of_a_template_are_judged_with_its_parameters() {
    assert_eq!(
        reported(&[("shop.yaml", TEMPLATE)]),
        ["rolling-update-overlap DeploymentConfig shop 14"]
    );
}

/// A mode that is not known says nothing, and a count that is not known is none.
#[test]
fn parameters_without_a_value_are_placeholders() {
    for parameter in ["MODE, value: ReadWriteOnce", "COUNT, value: \"1\""] {
        let name = parameter.split(',').next().unwrap();
        let text = TEMPLATE.replace(parameter, &format!("{name}, required: true"));
        let reported = reported(&[("shop.yaml", &text)]);
        assert!(
            reported.iter().all(|it| it.starts_with("unresolved-claim")),
            "{parameter}: {reported:?}"
        );
    }
}

/// Both are written where they stand, with everything else as it was.
#[test]
fn a_rollout_and_an_object_of_a_template_are_repaired_in_place() {
    let rollout = ROLLOUT.replace("canary: {}", "canary:\n      steps: [{setWeight: 20}]");
    let files = [
        ("class.yaml", CLASS),
        ("claim.yaml", CLAIM),
        ("web.yaml", rollout.as_str()),
        ("shop.yaml", TEMPLATE),
    ];
    let folder = repository(&files);
    let output = run(&folder, &["check", ".", "--fix"]);
    assert_eq!(code(&output), 0, "{}{}", out(&output), err(&output));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let fixed = rollout.replace(
        "steps: [{setWeight: 20}]",
        "steps: [{setWeight: 20}]\n      maxSurge: 0\n      maxUnavailable: 1",
    );
    assert_eq!(read("web.yaml"), fixed);
    assert_eq!(
        read("shop.yaml"),
        TEMPLATE.replace("{type: Rolling}", "{type: Recreate}")
    );
}
