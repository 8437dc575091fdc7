//! Faults that keep `serve` from starting: a sentence on standard error with the place of the
//! fault, and the exit code.

use std::fs;
use std::net::TcpListener;

use crate::running::command;
use crate::serving::in_time;

/// The fault, the arguments, and a part of the message.
const CASES: &str = "\
facts that are not YAML | --self-signed --facts=TMP/yaml.yaml | TMP/yaml.yaml:3:11:\x20
facts of another shape | --self-signed --facts=TMP/class.yaml | TMP/class.yaml:6:14: This StorageClass
facts without a fact | --self-signed --facts=TMP/nothing.yaml | TMP/nothing.yaml: No facts were found here
facts that are not there | --self-signed --facts=no/such | no/such:\x20
an unknown key in the policy | GOOD --config=TMP/key.yaml --policy-required | TMP/key.yaml:2:1: the key \"default\"
a provisioner named twice | GOOD --config=TMP/twice.yaml --policy-required | TMP/twice.yaml:3:
no policy there | GOOD --config=no/such --policy-required | The policy file no/such cannot be read
no certificate there | --facts=examples/facts --tls-cert=no/c --tls-key=no/k | no/c
no cluster to manage a certificate in | --facts=examples/facts --manage-certs | --manage-certs needs a cluster. Set KUBECONFIG to your kubeconfig
no cluster to make Events in | --self-signed --events | --events needs a cluster. Set KUBECONFIG to your kubeconfig
no certificate named | --facts=examples/facts | --self-signed
a folder to write to that is not there | GOOD --write-ca=no/such/ca.pem | no/such/ca.pem
an unknown option | GOOD --no-such-option | --no-such-option
a port in use | GOOD --listen=TAKEN | The webhook port cannot listen on TAKEN
a port in use | GOOD --admin=TAKEN | The admin port cannot listen on TAKEN
";

#[tokio::test]
async fn the_fault_is_named_and_the_exit_code_says_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let class = "# facts\n---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\nprovisioner: [x]\n";
    let twice =
        "provisioners:\n- {name: a, attachRequired: true}\n- {name: a, attachRequired: true}\n";
    for (name, content) in [
        ("yaml.yaml", "apiVersion: v1\nkind: Node\nmetadata: [1\n"),
        ("class.yaml", class),
        ("nothing.yaml", "# nothing\n"),
        ("key.yaml", "nodes: auto\ndefault: {}\n"),
        ("twice.yaml", twice),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let cases = CASES
        .replace("TMP", folder.path().to_str().unwrap())
        .replace("TAKEN", &taken.local_addr().unwrap().to_string())
        .replace("GOOD", "--self-signed --facts=examples/facts");
    for line in cases.lines() {
        let [case, arguments, expected] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let code = if case == "a port in use" { 1 } else { 2 };
        let all: Vec<&str> = arguments.split(' ').collect();
        let mut command = command(&[&["serve"], &all[..]].concat());
        for port in ["--listen", "--admin"] {
            if !arguments.contains(port) {
                command.arg(format!("{port}=127.0.0.1:0"));
            }
        }
        let output = in_time("the process ends", command.output()).await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{case}: {text}");
        assert!(text.contains(expected), "{case}: {text}");
    }
}
