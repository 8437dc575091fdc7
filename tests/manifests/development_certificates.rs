//! `certs/development`, the script for trying the guard without a cluster.

use std::process::{Command, Output};

use crate::repository;

fn script(arguments: &[&str]) -> Output {
    let mut command = Command::new(repository("certs/development"));
    command.args(arguments).output().unwrap()
}

/// Clients trust the script's certificate for every given name, and for no other.
#[test]
fn the_ca_vouches_for_every_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    let made = script(&[&at, "guard.shop.svc", "10.1.2.3", "fd00::1"]);
    assert!(made.status.success(), "{made:#?}");
    for (kind, name, expected) in [
        ("-verify_hostname", "localhost", true),
        ("-verify_hostname", "guard.shop.svc", true),
        ("-verify_ip", "127.0.0.1", true),
        ("-verify_ip", "10.1.2.3", true),
        ("-verify_ip", "fd00::1", true),
        ("-verify_hostname", "elsewhere", false),
    ] {
        let mut verify = Command::new("openssl");
        verify
            .current_dir(&folder)
            .args(["verify", "-purpose", "sslserver", kind, name])
            .args(["-CAfile", "ca.crt", "tls.crt"]);
        let output = verify.output().unwrap();
        assert_eq!(output.status.success(), expected, "{name}: {output:#?}");
    }
    let files = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(files.count(), 3, "the CA's key is not kept");
}

#[test]
fn mistakes_are_reported_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    for (arguments, said) in [
        (vec![], "Name the folder"),
        (vec![at.as_str(), "a b"], "\"a b\" is neither"),
        (vec![at.as_str(), "300.1.1.1"], "bad ip address"),
    ] {
        let output = script(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0);
}
