//! Managed certificates with a real API server that sends requests all the time: whatever happens
//! to the certificates, every admission is answered.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderValue, Method, Response, header};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::util::MapResponseLayer;
use webhook::admission::{Answer, Decision, Endpoint, MalformedReview, Operation};
use webhook::server::{Metrics, Options, Reviewer, Server};
use webhook_certs::{Certificates, Lifetimes, ManagedCertificate, Pace, ServingPair};

use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, Needs, asking, seen, until};
use crate::installed::{DEADLINE, account, kubeconfig, options, register_changed};
use crate::rendered::BASE;
use crate::repository;

pub(crate) const NAMESPACE: &str = "multi-attach-guard";
pub(crate) const SECRET: &str = "multi-attach-guard-managed-tls";
pub(crate) const KINDS: [&str; 2] =
    ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

pub(crate) const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Chosen so that, within the time by which the replicas' clocks can be behind the real one, two
/// thirds of both lifetimes pass but neither lifetime ends.
const LIFETIMES: Lifetimes = Lifetimes {
    authority: SignedDuration::from_hours(100 * 24),
    certificate: SignedDuration::from_hours(80 * 24),
};

/// An age in days at which the certificate must be renewed, and one at which the CA must be.
const CERTIFICATE_DUE: i32 = 55;
const AUTHORITY_DUE: i32 = 75;

/// No wait is longer than necessary. An API server here has two seconds to learn of a new caBundle.
const PACE: Pace = Pace {
    look: Duration::from_millis(500),
    retry: Duration::from_millis(200),
    pause: Duration::from_millis(50),
    settled: Duration::from_secs(2),
    forgotten: Duration::from_secs(3600),
};

/// The age in days of the replicas' first certificates. Their clocks, and the API server's as they
/// see it, start behind the real time, and are right when the CA is due.
type Age = Arc<AtomicI32>;

fn ahead(age: &Age) -> SignedDuration {
    DAY * (age.load(Ordering::Relaxed) - AUTHORITY_DUE)
}

/// Allows everything.
struct Allowing;

impl Reviewer for Allowing {
    async fn review(
        &self,
        _: Endpoint,
        body: &[u8],
        _: Option<IpAddr>,
        _: Instant,
    ) -> Result<Answer, MalformedReview> {
        let review: Value = serde_json::from_slice(body).unwrap();
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": true},
        });
        Ok(Answer {
            body: answer.to_string().into(),
            kind: "Deployment",
            operation: Operation::Create,
            dry_run: true,
            decision: Decision::Allowed,
            findings: Vec::new(),
            too_complex: false,
        })
    }
}

/// One of several servers with a managed certificate.
struct Replica {
    certificates: Arc<Certificates>,
    url: String,
}

impl Replica {
    fn start(plane: &ControlPlane, age: &Age) -> Self {
        let certificates = Arc::new(Certificates::default());
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut options = Options::new(any, any);
        // Connections are short, because only new ones see a new certificate.
        options.limits.age = Duration::from_millis(500);
        let server = plane
            .block_on(Server::start(
                &options,
                Arc::clone(&certificates) as _,
                Allowing,
                Vec::new(),
                Metrics::new(&["Deployment"]),
            ))
            .unwrap();
        let url = format!("https://{}", server.listen());
        plane.runtime().spawn(server.run());
        let managed = ManagedCertificate {
            namespace: NAMESPACE.to_owned(),
            further_names: vec!["127.0.0.1".to_owned()],
            lifetimes: LIFETIMES,
            pace: PACE,
        };
        let (of_api_server, own) = (Arc::clone(age), Arc::clone(age));
        let client = client(plane, move || ahead(&of_api_server));
        let into = Arc::clone(&certificates);
        plane.runtime().spawn(async move {
            managed.follow(client, into, || Timestamp::now() + ahead(&own), |_| ()).await;
        });
        Self { certificates, url }
    }
}

struct Cluster<'a> {
    plane: &'a ControlPlane,
    replicas: [Replica; 2],
}

impl Cluster<'_> {
    /// The CA in the Secret.
    fn authority(&self) -> String {
        let secret = self.plane.get(&["secret", SECRET, "-n", NAMESPACE]);
        pem(&secret["data"]["ca.crt"])
    }

    /// The CAs in every caBundle.
    fn bundles(&self) -> Vec<String> {
        KINDS
            .iter()
            .flat_map(|kind| {
                let got = self.plane.get(&[*kind, NAMESPACE]);
                got["webhooks"].as_array().unwrap().clone()
            })
            .map(|webhook| pem(&webhook["clientConfig"]["caBundle"]))
            .collect()
    }

    /// Waits until both replicas show the same certificate, which must differ from `before`.
    fn until_served(&self, before: Option<&ServingPair>) -> Arc<ServingPair> {
        until("both replicas to show a new certificate", DEADLINE, || {
            let served = self.replicas.each_ref().map(|replica| replica.certificates.current());
            match &served {
                [Some(one), Some(two)]
                    if one.not_after() == two.not_after()
                        && before.is_none_or(|pair| pair.not_after() != one.not_after()) =>
                {
                    Ok(Arc::clone(one))
                }
                _ => Err(format!("{served:?} {:?}", self.failures())),
            }
        })
    }

    /// The failures that the replicas report.
    fn failures(&self) -> Vec<Arc<String>> {
        let of_each = self.replicas.each_ref().map(|replica| replica.certificates.failure());
        of_each.into_iter().flatten().collect()
    }

    /// Waits until `count` replicas report a failure, each with these parts.
    fn until_failures(&self, count: usize, parts: &[&str]) {
        let what = format!("{count} failures with {parts:?}");
        until(&what, DEADLINE, || {
            let failures = self.failures();
            let mut said = failures.iter();
            let so = said.all(|failure| parts.iter().all(|part| failure.contains(part)));
            seen(so && failures.len() == count, failures)
        });
    }

    /// Registers the webhooks of the base: the mutating ones at the first replica, the validating
    /// ones at the second.
    fn register(&self, failure_policy: &str) {
        register_changed(self.plane, BASE, |kind, webhook| {
            let replica = KINDS.iter().position(|known| *known == kind).unwrap();
            let path = webhook["clientConfig"]["service"]["path"].clone();
            let url = format!("{}{}", self.replicas[replica].url, path.as_str().unwrap());
            webhook["clientConfig"] = json!({"url": url});
            webhook["failurePolicy"] = json!(failure_policy);
            webhook["timeoutSeconds"] = json!(30);
        });
    }

    /// Calls `act` while Deployments with a claim are created all the time, and waits for many more
    /// creations. None may fail; while the webhooks have `failurePolicy: Fail`, both replicas must
    /// answer each.
    fn under_requests<T>(&self, what: &str, act: impl FnOnce() -> T) -> T {
        let (errors, client) = (Arc::new(Mutex::new(Vec::new())), self.plane.client());
        let into = Arc::clone(&errors);
        let asking = self.plane.runtime().spawn(async move {
            let deployments = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
            let deployment = object(json!({"kind": "Deployment", "uses": ["data"]}));
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            loop {
                pace.tick().await;
                let request = asking::request(Method::POST, deployments, &deployment);
                let error = client.request_text(request).await.err();
                into.lock().unwrap().push(error.map(|error| error.to_string()));
            }
        });
        let done = act();
        let made = || errors.lock().unwrap().len();
        let enough = made() + 25;
        until("further creations", DEADLINE, || {
            let count = made();
            seen(count >= enough, count)
        });
        asking.abort();
        let errors = errors.lock().unwrap();
        let failed: Vec<&String> = errors.iter().flatten().collect();
        eprintln!("{what}: {} requests, {} failed", errors.len(), failed.len());
        assert!(failed.is_empty(), "{what}: {failed:#?}");
        done
    }
}

/// The text of a field that holds bytes; empty if there is no such field.
pub(crate) fn pem(field: &Value) -> String {
    let bytes: Option<ByteString> = serde_json::from_value(field.clone()).unwrap();
    String::from_utf8(bytes.unwrap_or_default().0).unwrap()
}

/// A client with the rights of the guard, to which the API server's clock seems to be ahead.
pub(crate) fn client(
    plane: &ControlPlane,
    ahead: impl Fn() -> SignedDuration + Clone + Send + 'static,
) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig(plane)).unwrap();
    let options = KubeConfigOptions::default();
    plane.block_on(async {
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        ClientBuilder::try_from(config.unwrap())
            .unwrap()
            .with_layer(&MapResponseLayer::new(move |answer| dated(answer, ahead())))
            .build()
    })
}

/// The answer of an API server whose clock is ahead.
fn dated<B>(mut answer: Response<B>, ahead: SignedDuration) -> Response<B> {
    let time = Timestamp::now() + ahead;
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap();
    answer.headers_mut().insert(header::DATE, HeaderValue::try_from(date).unwrap());
    answer
}

/// Needs its own control plane, because webhook configurations are cluster-wide.
#[test]
fn nothing_that_happens_to_certificates_fails_an_admission() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    account(&plane);
    let age = Age::default();
    let start = || Replica::start(&plane, &age);
    let cluster = Cluster { plane: &plane, replicas: [start(), start()] };
    // Both start at once but make one Secret. Until then objects pass unjudged, as the manifests
    // allow.
    let first = cluster.under_requests("first start, two replicas at once", || {
        cluster.register("Ignore");
        cluster.until_served(None)
    });
    assert!(first.not_before() < Timestamp::now() - DAY * AUTHORITY_DUE);
    let authority = cluster.authority();

    // From here on, both replicas must answer every request.
    cluster.register("Fail");
    let second = cluster.under_requests("certificate renewed", || {
        age.store(CERTIFICATE_DUE, Ordering::Relaxed);
        cluster.until_served(Some(&first))
    });
    assert_eq!(cluster.authority(), authority, "the CA stays");

    let third = cluster.under_requests("authority renewed", || {
        age.store(AUTHORITY_DUE, Ordering::Relaxed);
        cluster.until_served(Some(&second))
    });
    assert_ne!(cluster.authority(), authority);
    for bundle in cluster.bundles() {
        let authorities = bundle.matches("BEGIN CERTIFICATE").count();
        assert_eq!(authorities, 2, "the old one stays for those who need it");
    }

    let fourth = cluster.under_requests("Secret deleted", || {
        plane.run(&format!("delete secret {SECRET} -n {NAMESPACE}"));
        cluster.until_served(Some(&third))
    });

    // The certificate in use stays, and the log and /readyz name the missing right.
    let manifest = repository("manifests/base/certificates.yaml");
    let rights = manifest.to_str().unwrap();
    cluster.under_requests("a right is missing", || {
        plane.kubectl(&["delete", "-f", rights], None).success();
        cluster.until_failures(2, &[SECRET, "certificates.yaml"]);
    });
    plane.kubectl(&["apply", "-f", rights], None).success();
    cluster.until_failures(0, &[]);

    // While the API server is stopped no request is possible; this tests the requests after it.
    plane.api_server().signal("STOP");
    cluster.until_failures(2, &[]);
    plane.api_server().signal("CONT");
    cluster.until_failures(0, &[]);
    cluster.under_requests("API server away", || ());
    let after = cluster.until_served(None);
    assert_eq!(after.not_after(), fourth.not_after());

    // The API server reads the wrong caBundle before a replica can repair it, so a few objects pass
    // unjudged.
    cluster.register("Ignore");
    let foreign = ByteString(plane.pki.authority_pem().into_bytes());
    let wrong = json!({"webhooks": [{
        "name": "workloads.multi-attach-guard.dev",
        "clientConfig": {"caBundle": foreign},
    }]});
    cluster.under_requests("caBundle overwritten", || {
        for kind in KINDS {
            plane.run(&format!("patch {kind} {NAMESPACE} -p {wrong}"));
        }
        until("the caBundles to be right", DEADLINE, || {
            let (own, bundles) = (cluster.authority(), cluster.bundles());
            let right = bundles.iter().all(|bundle| bundle.contains(&own));
            seen(right, bundles)
        });
    });
    cluster.register("Fail");
    cluster.under_requests("caBundle right again", || ());
}

/// The program itself, with the rights and the argument from the manifests.
#[test]
fn the_program_manages_its_certificate_with_the_rights_it_has() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    account(&plane);
    let arguments = ["--manage-certs", "--dns-name=127.0.0.1", "--log-format=json"];
    let options = options(&plane, &arguments);
    let (_program, _, admin) = plane.serve("managed", &options);
    let exposition = plane.metrics(&admin);
    for name in [
        "multi_attach_guard_certificate_expiry_timestamp_seconds ",
        "multi_attach_guard_certificate_authority_expiry_timestamp_seconds ",
    ] {
        let value = exposition.lines().find_map(|line| line.strip_prefix(name));
        let expires: f64 = value.unwrap_or(name).parse().unwrap();
        assert!(expires > (Timestamp::now() + DAY * 89).as_second() as f64);
    }

    let account = format!("--as=system:serviceaccount:{NAMESPACE}:multi-attach-guard");
    for (question, expected) in [
        ("get secret/OWN -n GUARD", true),
        ("update secret/OWN -n GUARD", true),
        ("delete secret/OWN -n GUARD", false),
        ("get secret/other -n GUARD", false),
        ("update secret/other -n GUARD", false),
        ("list secrets -n GUARD", false),
        ("get secret/OWN -n default", false),
        ("patch validatingwebhookconfigurations/GUARD", true),
        ("patch validatingwebhookconfigurations/other", false),
    ] {
        let filled = question.replace("OWN", SECRET).replace("GUARD", NAMESPACE);
        let command = format!("auth can-i {filled} {account}");
        let words: Vec<&str> = command.split(' ').collect();
        let answer = plane.kubectl(&words, None);
        assert_eq!(answer.status == 0, expected, "{answer:#?}");
    }
}
