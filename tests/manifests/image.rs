//! The images: they build without any other image. The one of the webhook matches the Deployment that
//! runs it, and the one that checks has the programs that render.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness;
use crate::rendered::{documents, printed};
use crate::repository;

/// A rootless buildah without a daemon, with its own images, which are removed with the folder.
fn buildah(folder: &Path) -> Command {
    let mut command = Command::new("buildah");
    command.arg("--storage-driver=vfs");
    for (option, name) in [("--root", "images"), ("--runroot", "run")] {
        command.arg(option).arg(folder.join(name));
    }
    command
}

/// The file of a part in `dir:`, the format in which buildah writes an image as files.
fn part(image: &Path, of: &Value) -> PathBuf {
    image.join(of["digest"].as_str().unwrap().trim_start_matches("sha256:"))
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn each_holds_its_programs_and_one_is_run_as_the_deployment_says() {
    harness::or_skip!(harness::require_tool("buildah"));
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    let programs = context.join("target/programs/linux");
    for architecture in ["amd64", "arm64"] {
        let place = programs.join(architecture);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("multi-attach-guard"), architecture).unwrap();
    }
    let renderers = context.join("target/renderers/linux/amd64");
    fs::create_dir_all(renderers.join("tmp")).unwrap();
    for file in ["helm", "kustomize", "tmp/.keep"] {
        fs::write(renderers.join(file), file).unwrap();
    }
    for file in ["Dockerfile", ".dockerignore", "LICENSE"] {
        fs::copy(repository(file), context.join(file)).unwrap();
    }
    let deployment = fs::read_to_string(repository("manifests/base/deployment.yaml")).unwrap();
    let pod = &documents(&deployment).remove(0)["spec"]["template"]["spec"];
    let ports: BTreeSet<String> = pod["containers"][0]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| format!("{}/tcp", port["containerPort"]))
        .collect();

    for architecture in ["amd64", "arm64"] {
        let (config, files) = built(folder.path(), architecture, &[]);
        assert_eq!(config["architecture"], architecture);
        let config = &config["config"];
        assert_eq!(config["Entrypoint"], json!(["/multi-attach-guard"]));
        // The user is a number, because `runAsNonRoot` accepts no name, and not root.
        let user = config["User"].as_str().unwrap();
        assert!(user.starts_with(|c| matches!(c, '1'..='9')), "{user}");
        let exposed: BTreeSet<String> =
            config["ExposedPorts"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(exposed, ports);
        let labels = &config["Labels"];
        assert_eq!(labels["org.opencontainers.image.version"], "1.2.3");
        assert_eq!(files, "LICENSE\nmulti-attach-guard\n");
    }
    let (config, files) = built(folder.path(), "amd64", &["--target=check"]);
    let config = &config["config"];
    assert_eq!(config["Entrypoint"], json!(["/multi-attach-guard"]));
    assert_eq!(config["Env"], json!(["PATH=/"]));
    for file in ["multi-attach-guard\n", "helm\n", "kustomize\n", "tmp/\n"] {
        assert!(files.contains(file), "{files}");
    }
}

/// The configuration and the files of an image that is built from `folder`.
fn built(folder: &Path, architecture: &str, options: &[&str]) -> (Value, String) {
    printed(
        buildah(folder)
            .args(["build", "--isolation=chroot", "--build-arg=VERSION=1.2.3"])
            .args(options)
            .arg(format!("--platform=linux/{architecture}"))
            .arg("--tag=built")
            .arg(folder.join("context")),
    );
    let image = tempfile::tempdir_in(folder).unwrap();
    let destination = format!("dir:{}", image.path().display());
    printed(buildah(folder).args(["push", "built", &destination]));
    let manifest = read(&image.path().join("manifest.json"));
    let layers = manifest["layers"].as_array().unwrap().iter();
    let files = layers.map(|layer| {
        let mut tar = Command::new("tar");
        printed(tar.args(["--list", "--file"]).arg(part(image.path(), layer)))
    });
    (read(&part(image.path(), &manifest["config"])), files.collect())
}
