//! What lies beside charts and kustomizations, and definitions that agree.

use super::rendering::{check, found, report, tools};
use super::{CLASS, code, out, repository, run};

fn claim(name: &str, namespace: &str, class: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{accessModes: [ReadWriteOnce], storageClassName: {class}}}\n"
    )
}

/// A workload with the claim; `spec` is what its kind has besides.
fn workload(kind: &str, name: &str, namespace: &str, spec: &str, claim: &str) -> String {
    let version = match kind {
        "Job" => "batch/v1",
        _ => "apps/v1",
    };
    format!(
        "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n  {spec}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      restartPolicy: {}\n      containers: [{{name: a, image: a, volumeMounts: [{{name: data, mountPath: /data}}]}}]\n      volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]\n",
        match kind {
            "Job" => "Never",
            _ => "Always",
        }
    )
}

fn deployment(name: &str, namespace: &str, claim: &str) -> String {
    let spec = format!("selector: {{matchLabels: {{app: {name}}}}}");
    workload("Deployment", name, namespace, &spec, claim)
}

/// Each finding, as `action certainty rule name`.
fn said(report: &serde_json::Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|it| {
            let name = &it["object"]["name"];
            format!("{} {} {} {name}", it["action"], it["certainty"], it["rule"]).replace('"', "")
        })
        .collect()
}

#[test]
fn a_job_beside_a_kustomization_shares_its_claim() {
    let Some(tools) = tools(&["kustomize"]) else {
        return;
    };
    let set = workload(
        "StatefulSet",
        "panel",
        "house",
        "serviceName: panel\n  selector: {matchLabels: {app: panel}}",
        "rules",
    );
    let job = |namespace: &str| workload("Job", "restore", namespace, "completions: 1", "rules");
    for (job_in, expected) in [
        ("house", &["warn assumed workloads-share-volume"][..]),
        ("garden", &[]),
    ] {
        let folder = repository(&[
            ("class.yaml", CLASS),
            (
                "panel/kustomization.yaml",
                "namespace: house\nresources: [claim.yaml, set.yaml]\n",
            ),
            ("panel/claim.yaml", &claim("rules", "house", "gp3")),
            ("panel/set.yaml", &set),
            ("panel/restore-job.yaml", &job(job_in)),
        ]);
        let output = check(&folder, tools.path(), &[".", "--format", "json"]);
        let said = said(&report(&output));
        let said: Vec<&str> = said
            .iter()
            .filter(|it| it.contains("workloads-share-volume"))
            .map(|it| it.rsplit_once(' ').unwrap().0)
            .collect();
        assert_eq!(said, expected, "{job_in}: {output:?}");
    }
}

/// Two folders away, in one namespace, with one claim of the name in the repository.
#[test]
fn workloads_in_folders_apart_share_the_only_claim_of_a_name() {
    let app = deployment("web", "shop", "data")
        .replace("  selector", "  strategy: {type: Recreate}\n  selector");
    let job = |namespace: &str| workload("Job", "backup", namespace, "completions: 1", "data");
    let data = claim("data", "shop", "gp3");
    let sharing = "workloads-share-volume";
    let mut files = vec![
        ("apps/shop/web.yaml", app.as_str()),
        ("apps/shop/claim.yaml", &data),
        ("class.yaml", CLASS),
    ];
    let (near, other) = (job("shop"), job("other"));
    files.push(("jobs/nightly/backup/job.yaml", &near));
    let output = run(&repository(&files), &["check", ".", "--format", "json"]);
    let reported = said(&report(&output));
    let shared: Vec<&String> = reported.iter().filter(|it| it.contains(sharing)).collect();
    assert!(
        matches!(shared[..], [one] if one.starts_with("warn assumed ")),
        "{reported:?}"
    );
    assert_eq!(reported.len(), 1, "{reported:?}");
    for more in [
        ("jobs/nightly/backup/job.yaml", other.as_str()),
        // Two claims of the name are as well those of two clusters.
        ("staging/shop/deep/claim.yaml", &data),
    ] {
        let mut files = files.clone();
        files.retain(|(name, _)| *name != more.0);
        files.push(more);
        let output = run(&repository(&files), &["check", ".", "--format", "json"]);
        let reported = said(&report(&output));
        assert!(
            !reported.iter().any(|it| it.contains(sharing)),
            "{more:?} {reported:?}"
        );
    }
}

#[test]
fn what_lies_beside_the_templates_of_a_chart_is_read() {
    let store = format!(
        "{}---\n{}---\n{CLASS}",
        claim("store", "depot", "gp3"),
        deployment("store", "depot", "store")
    );
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: tool\nversion: 0.1.0\n"),
        ("values.yaml", "greeting: hello\n"),
        (
            "templates/configmap.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tool}\ndata: {greeting: {{ .Values.greeting }}}\n",
        ),
        ("templates/web.yaml", &store),
        ("deploy/store.yaml", &store),
    ];
    let output = run(&repository(&files), &["check", ".", "--format", "json"]);
    let found = found(&report(&output));
    assert!(
        matches!(&found[..], [one] if one.starts_with("depot/store deploy/store.yaml:")),
        "{found:?}"
    );
    assert_eq!(code(&output), 1);
}

/// Both are on one machine, whichever that is.
#[test]
fn two_definitions_on_local_volumes_are_one() {
    let on = |node: &str, mode: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: objects-{node}}}\nspec:\n  capacity: {{storage: 5Gi}}\n  accessModes: [{mode}]\n  storageClassName: \"\"\n  claimRef: {{namespace: lab, name: objects}}\n  local: {{path: /srv/objects}}\n  nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [node-{node}]}}]}}]}}}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: objects, namespace: lab}}\nspec: {{storageClassName: \"\", volumeName: objects-{node}, accessModes: [ReadWriteOnce]}}\n"
        )
    };
    let app = deployment("objects", "lab", "objects");
    for (mode, expected) in [("ReadWriteOnce", 0), ("ReadWriteMany", 1)] {
        let (a, b) = (on("a", "ReadWriteOnce"), on("b", mode));
        let files = [
            ("deployment.yaml", app.as_str()),
            ("storage/a.yaml", &a),
            ("storage/b.yaml", &b),
        ];
        let output = run(&repository(&files), &["check", ".", "--format", "json"]);
        assert_eq!(
            said(&report(&output)).len(),
            expected,
            "{mode}: {}",
            out(&output)
        );
    }
}

#[test]
fn a_class_of_the_family_of_local_path_is_not_one_that_attaches() {
    for (class, is_silent) in [("local-path-keep", true), ("localpath", false)] {
        let all = [
            claim("tapes", "studio", class),
            deployment("recorder", "studio", "tapes"),
            deployment("player", "studio", "tapes"),
        ];
        let output = run(
            &repository(&[("all.yaml", &all.join("---\n"))]),
            &["check", ".", "--format", "json"],
        );
        let said = said(&report(&output));
        assert_eq!(said.is_empty(), is_silent, "{class}: {said:?}");
    }
}
