//! The cost of `check`, compared with `helm template` for the same releases: 10,000 files,
//! including 200 HelmReleases of one chart in the repository. Prints the ratio of processor time,
//! next to the goal. Needs helm on the PATH.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "shared/processors.rs"]
mod processors;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use processors::children;

const FILES: usize = 10_000;
const RELEASES: usize = 200;

const CHART: [(&str, &str); 3] = [
    ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
    ("values.yaml", "strategy: {type: Recreate}\n"),
    (
        "templates/web.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Release.Name }}'}\nspec:\n  selector: {matchLabels: {app: web}}\n  strategy: {{ toJson .Values.strategy }}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n",
    ),
];

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: gp3}\n";

fn main() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path());
    let before = children();
    for number in 0..RELEASES {
        let mut helm = Command::new("helm");
        let values = folder.path().join("values.yaml");
        helm.args(["template", &format!("app-{number}")])
            .arg(folder.path().join("charts/web"))
            .arg("--values")
            .arg(values);
        run(helm);
    }
    let helm = children() - before;
    let mut check = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
    check.args(["check", "--format", "json", "."]);
    check.current_dir(folder.path());
    run(check);
    let checking = children() - before - helm;
    let seconds = |time: Duration| time.as_secs_f64();
    println!("{FILES} files with {RELEASES} releases, time on the processors:");
    println!("  helm template alone:  {:.2} s", seconds(helm));
    println!("  check:                {:.2} s", seconds(checking));
    println!(
        "  check beside helm:    {:.2} (goal: 3.00 at most)",
        seconds(checking) / seconds(helm)
    );
}

fn run(mut command: Command) {
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

fn generate(folder: &Path) {
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    for (name, text) in CHART {
        write(&format!("charts/web/{name}"), text);
    }
    write(".git/config", "");
    write("values.yaml", "strategy: {type: Recreate}\n");
    for number in 0..RELEASES {
        let release = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: app-{number}, namespace: team-{number}}}\nspec:\n  chart: {{spec: {{chart: charts/web, sourceRef: {{kind: GitRepository, name: flux-system}}}}}}\n  values: {{strategy: {{type: Recreate}}}}\n"
        );
        write(&format!("releases/{number}.yaml"), &release);
    }
    for number in 0..FILES - RELEASES {
        write(
            &format!("apps/{number}.yaml"),
            &format!(
                "{CLAIM}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: app-{number}}}\ndata: {{a: b}}\n"
            ),
        );
    }
}
