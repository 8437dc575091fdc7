//! What keeps `serve` from starting: a sentence on standard error with the
//! place at fault, and the exit code.

use std::fs;
use std::net::TcpListener;

use tempfile::TempDir;
use tokio::time::timeout;

use crate::machine::patient;
use crate::running::{DEADLINE, command};

fn file(folder: &TempDir, name: &str, content: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_fault_is_named_and_the_exit_code_says_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = file(
        &folder,
        "yaml.yaml",
        "apiVersion: v1\nkind: Node\nmetadata: [1\n",
    );
    let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\nprovisioner: [x]\n";
    let class = file(&folder, "class.yaml", &format!("# facts\n---\n{class}"));
    let nothing = file(&folder, "nothing.yaml", "# nothing\n");
    let key = file(&folder, "key.yaml", "nodes: auto\ndefault: {}\n");
    let twice = file(
        &folder,
        "twice.yaml",
        "provisioners:\n- {name: a, attachRequired: true}\n- {name: a, attachRequired: true}\n",
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("--listen={}", taken.local_addr().unwrap());

    let good = ["--self-signed", "--facts=examples/facts"];
    let with = |more: &str| [&good[..], &[more]].concat().join(" ");
    let cases = [
        (
            "facts that are not YAML",
            format!("--self-signed --facts={yaml}"),
            2,
            format!("{yaml}:3:11: "),
        ),
        (
            "facts of another shape",
            format!("--self-signed --facts={class}"),
            2,
            format!("{class}:6:14: This StorageClass"),
        ),
        (
            "facts without a fact",
            format!("--self-signed --facts={nothing}"),
            2,
            format!("{nothing}: No facts were found here"),
        ),
        (
            "facts that are not there",
            "--self-signed --facts=no/such".to_owned(),
            2,
            "no/such: ".to_owned(),
        ),
        (
            "an unknown key in the policy",
            with(&format!("--config={key} --policy-required")),
            2,
            format!("{key}:2:1: the key \"default\""),
        ),
        (
            "a provisioner named twice",
            with(&format!("--config={twice} --policy-required")),
            2,
            format!("{twice}:3:"),
        ),
        (
            "no policy there",
            with("--config=no/such --policy-required"),
            2,
            "The policy file no/such cannot be read".to_owned(),
        ),
        (
            "no certificate there",
            "--facts=examples/facts --tls-cert=no/c --tls-key=no/k".to_owned(),
            2,
            "no/c".to_owned(),
        ),
        (
            "no cluster to manage a certificate in",
            "--facts=examples/facts --manage-certs".to_owned(),
            2,
            "--manage-certs needs a cluster. No cluster is known".to_owned(),
        ),
        (
            "no cluster to make Events in",
            "--self-signed --events".to_owned(),
            2,
            "--events needs a cluster. No cluster is known".to_owned(),
        ),
        (
            "no certificate named",
            "--facts=examples/facts".to_owned(),
            2,
            "--self-signed".to_owned(),
        ),
        (
            "a folder to write to that is not there",
            with("--write-ca=no/such/ca.pem"),
            2,
            "no/such/ca.pem".to_owned(),
        ),
        (
            "an unknown option",
            with("--no-such-option"),
            2,
            "--no-such-option".to_owned(),
        ),
        ("a port in use", with(&taken), 1, "--listen".to_owned()),
    ];
    for (case, arguments, code, expected) in cases {
        let arguments: Vec<&str> = ["serve", "--admin=127.0.0.1:0"]
            .into_iter()
            .chain(arguments.split(' '))
            .collect();
        let mut command = command(&arguments);
        if !arguments
            .iter()
            .any(|argument| argument.starts_with("--listen"))
        {
            command.arg("--listen=127.0.0.1:0");
        }
        let output = timeout(patient(DEADLINE), command.output()).await;
        let output = output.expect("the process ends").unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{case}: {text}");
        assert!(text.contains(&expected), "{case}: {text}");
    }
}
