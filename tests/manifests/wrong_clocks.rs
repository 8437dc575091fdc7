//! Managed certificates while clocks are wrong: replicas of the program with their own clocks, a
//! replica of an older version, and a real API server.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use webhook_certs::{Certificates, Lifetimes, ManagedCertificate, Pace};

use crate::harness::clock::Clock;
use crate::harness::process::{Program, free_port};
use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, Needs, seen, until};
use crate::installed::{DEADLINE, account, options, register_changed};
use crate::managed_certificates::{DAY, KINDS, NAMESPACE, SECRET, client, pem};
use crate::rendered::BASE;

/// A replica of the program, ready or not.
struct Replica<'a> {
    plane: &'a ControlPlane,
    clock: Clock,
    program: Program,
    readiness: String,
}

impl<'a> Replica<'a> {
    fn start(plane: &'a ControlPlane, name: &str, port: u16, offset: &str) -> Option<Self> {
        let clock = Clock::new(plane, name)?;
        clock.set(offset);
        let options = clock.faked(options(plane, &["serve", "--manage-certs"]));
        let admin = format!("127.0.0.1:{}", free_port());
        let mut arguments = options.arguments;
        arguments.extend([
            "--dns-name=127.0.0.1".to_owned(),
            format!("--listen=127.0.0.1:{port}"),
            format!("--admin={admin}"),
        ]);
        let environment: Vec<(&str, &str)> =
            options.environment.iter().map(|(variable, value)| (&**variable, &**value)).collect();
        let binary = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
        let folder = plane.write_file(name, "").with_extension("d");
        let program = Program::start(name, binary, &arguments, &environment, &folder).unwrap();
        Some(Self { plane, clock, program, readiness: format!("http://{admin}/readyz") })
    }

    /// Waits until the replica's readiness says this.
    fn until_ready_says(&self, part: &str) {
        until(part, DEADLINE, || {
            let answer = self.plane.block_on(async {
                self.plane.http().get(&self.readiness).send().await?.text().await
            });
            let text = answer.unwrap_or_else(|error| error.to_string());
            seen(text.contains(part), (text, self.program.log_tail()))
        });
    }
}

/// The CA in the Secret, if there is one.
fn authority(plane: &ControlPlane) -> Option<String> {
    let list = plane.get(&["secrets", "-n", NAMESPACE]);
    let secrets = list["items"].as_array().unwrap();
    let secret = secrets.iter().find(|secret| secret["metadata"]["name"] == SECRET)?;
    Some(pem(&secret["data"]["ca.crt"]))
}

/// Writes what an older version wrote while its clock was ahead by so many days.
fn write_as_older_version(plane: &ControlPlane, days: i32) {
    let managed = ManagedCertificate {
        namespace: NAMESPACE.to_owned(),
        further_names: vec!["127.0.0.1".to_owned()],
        lifetimes: Lifetimes::default(),
        pace: Pace::default(),
    };
    let certificates = Arc::new(Certificates::default());
    let (client, into) = (client(plane, move || DAY * days), Arc::clone(&certificates));
    let task = plane.runtime().spawn(async move {
        managed.follow(client, into, || Timestamp::now() + DAY * days, |_| ()).await;
    });
    until("the older version's certificate", DEADLINE, || {
        seen(certificates.current().is_some(), certificates.failure())
    });
    task.abort();
}

/// Waits until the API server accepts the certificate of the replica that it calls, which may not
/// fail.
fn until_called(plane: &ControlPlane) {
    let deployment = object(json!({"kind": "Deployment", "uses": ["data"]})).to_string();
    until("the API server to accept the certificate", DEADLINE, || {
        let create = ["create", "--dry-run=server", "-f", "-"];
        let created = plane.kubectl(&create, Some(&deployment));
        seen(created.status == 0, created)
    });
}

/// Needs its own control plane, because webhook configurations are cluster-wide.
#[test]
fn certificates_heal_whatever_a_clock_did() {
    harness::or_skip!(harness::clock::library());
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    account(&plane);
    let ports = [free_port(), free_port()];
    register_changed(&plane, BASE, |kind, webhook| {
        let port = ports[usize::from(kind == KINDS[1])];
        let path = webhook["clientConfig"]["service"]["path"].clone();
        let url = format!("https://127.0.0.1:{port}{}", path.as_str().unwrap());
        webhook["clientConfig"] = json!({"url": url});
        webhook["failurePolicy"] = json!("Fail");
        webhook["timeoutSeconds"] = json!(30);
    });

    // The first installation, on a machine whose clock is two days ahead.
    let first = harness::or_skip!(Replica::start(&plane, "first", ports[0], "+2d"));
    first
        .until_ready_says("not-ready certificate: This machine's clock is 2 days ahead of the API");
    assert_eq!(authority(&plane), None);

    // An older version whose clock is months ahead.
    write_as_older_version(&plane, 100);
    let early = authority(&plane);
    first
        .until_ready_says("not-ready certificate: This machine's clock is 2 days ahead of the API");
    assert_eq!(authority(&plane), early);

    // One clock is right.
    let second = harness::or_skip!(Replica::start(&plane, "second", ports[1], "+0"));
    second.until_ready_says("ready certificate: The certificate is good until");
    assert_ne!(authority(&plane), early);
    let log = second.program.log();
    assert!(log.contains("the CA is not valid before"), "{log}");

    // The other one is set right.
    first.clock.set("+0");
    first.until_ready_says("ready certificate: The certificate is good until");
    until_called(&plane);

    // A clock jumps while the certificate is renewed.
    for (offset, sentence) in [
        ("+100d", "not-ready certificate: This machine's clock is 100 days ahead of the API"),
        ("-100d", "not-ready certificate: This machine's clock is 100 days behind the API"),
    ] {
        let before = authority(&plane);
        second.clock.set(offset);
        plane.run(&format!("delete secret {SECRET} -n {NAMESPACE}"));
        second.until_ready_says(sentence);
        until("a new Secret", DEADLINE, || {
            let after = authority(&plane);
            seen(after.is_some() && after != before, after)
        });
        until_called(&plane);
        second.clock.set("+0");
        second.until_ready_says("ready certificate: The certificate is good until");
        until_called(&plane);
    }
}
