//! Client certificates, set up with the commands and files of the security page, unchanged, for a
//! real API server that calls the guard through its Service.

use std::net::{self, SocketAddr};
use std::path::Path;
use std::process::Command;

use k8s_openapi::ByteString;
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::harness::output::{code, has, out};
use crate::harness::{self, ControlPlane, Needs, Options};
use crate::installed::{account, options, register_changed, until_asked};
use crate::pages::{blocks, section};
use crate::rendered::{BASE, printed, script};
use crate::repository;

/// The folder in which the page puts the files.
const PLACE: &str = "/etc/kubernetes/pki/multi-attach-guard";

/// The page's name for the API server's user for the guard.
const USER: &str = "- name: multi-attach-guard.multi-attach-guard.svc\n";

/// Acts as the Service: connects each caller with the guard.
fn forward(plane: &ControlPlane, from: net::TcpListener, guard: &str) {
    let guard: SocketAddr = guard.strip_prefix("https://").unwrap().parse().unwrap();
    from.set_nonblocking(true).unwrap();
    plane.runtime().spawn(async move {
        let from = TcpListener::from_std(from).unwrap();
        loop {
            let (mut caller, _) = from.accept().await.unwrap();
            tokio::spawn(async move {
                let mut connection = TcpStream::connect(guard).await.unwrap();
                let _ = copy_bidirectional(&mut caller, &mut connection).await;
            });
        }
    });
}

#[test]
fn the_api_server_is_answered_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let section = section("security.md", "Client certificates");
    let [("bash", commands), ("yaml", admission), ("yaml", webhooks)] = blocks(&section)[..] else {
        panic!("the page shows the commands and the two files, and no other");
    };
    script(folder.path(), commands);

    // The port must be known before the API server starts. For ports other than 443 the user's name
    // ends with the port (`clientConfig` in apiserver/pkg/util/webhook).
    let address = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = address.local_addr().unwrap().port();
    let place = folder.path().display().to_string();
    assert!(webhooks.contains(USER), "{webhooks}");
    let webhooks = webhooks.replace(USER, &format!("{}:{port}\n", USER.trim_end()));
    std::fs::write(file("webhooks.kubeconfig"), webhooks.replace(PLACE, &place)).unwrap();
    std::fs::write(file("admission.yaml"), admission.replace(PLACE, &place)).unwrap();
    let admitting = Options {
        api_server_flags: vec![format!("--admission-control-config-file={place}/admission.yaml")],
        ..Options::of(Needs::ApiServer)
    };
    let plane = harness::or_skip!(harness::start_control_plane_with(Needs::ApiServer, &admitting));

    account(&plane);
    let mut script = Command::new(repository("certs/development"));
    printed(script.args([&place, "multi-attach-guard.multi-attach-guard.svc"]));
    let files = [
        format!("--tls-cert={place}/tls.crt"),
        format!("--tls-key={place}/tls.key"),
        format!("--client-ca={place}/client-ca.crt"),
    ];
    let options = options(&plane, &files.each_ref().map(String::as_str));
    let (_program, url, _) = plane.serve("asked-by-name", &options);
    forward(&plane, address, &url);

    // A name that resolves to this machine: nothing else forwards requests to a Service here.
    plane.apply(
        "multi-attach-guard",
        "{apiVersion: v1, kind: Service, metadata: {name: multi-attach-guard}, \
          spec: {type: ExternalName, externalName: 127.0.0.1}}",
    );
    let authority = std::fs::read(file("ca.crt")).unwrap();
    register_changed(&plane, BASE, |_, webhook| {
        let client = &mut webhook["clientConfig"];
        client["service"]["port"] = json!(port);
        client["caBundle"] = json!(ByteString(authority.clone()));
    });
    until_asked(&plane);

    let review = format!("@{}", repository("examples/review.json").display());
    let asked = |shown: Option<[&Path; 2]>| {
        let flags = "--silent --cacert ca.crt --header content-type:application/json --data";
        let mut curl = Command::new("curl");
        curl.current_dir(&folder).args(flags.split(' '));
        curl.arg(&review).arg(format!("{url}/validate"));
        if let Some([certificate, key]) = shown {
            curl.arg("--cert").arg(certificate).arg("--key").arg(key);
        }
        curl.output().unwrap()
    };
    let own = ["client.crt", "client.key"].map(Path::new);
    has(out(&asked(Some(own))), "\"allowed\":");
    let somebody = plane.pki.client("somebody", "system:masters");
    let of_the_cluster = [&*somebody.certificate, &*somebody.key];
    for (who, shown) in
        [("without a certificate", None), ("with one of the cluster's", Some(of_the_cluster))]
    {
        let answer = asked(shown);
        // The guard ends the connection during the request or after it.
        assert!([55, 56].contains(&code(&answer)), "{who}: {answer:?}");
    }
}
