//! Certificates that manage themselves, against a real API server that asks all the
//! time: whatever happens to them, every admission is answered.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use webhook::admission::{Answer, Decision, Endpoint, MalformedReview, Operation};
use webhook::server::{Metrics, Options, Reviewer, Server};
use webhook_certs::{Certificates, Lifetimes, ManagedCertificate, Pace, ServingPair};

use crate::harness::shorthand::object;
use crate::harness::{self, ControlPlane, Needs};
use crate::installed::{DEADLINE, account, kubeconfig, options, register_changed};
use crate::rendered::BASE;
use crate::repository;

const NAMESPACE: &str = "multi-attach-guard";
const SECRET: &str = "multi-attach-guard-managed-tls";
const KINDS: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// So that two thirds of both are over, and neither is over, within the time that the
/// clock of the replicas can be behind that of the API server.
const LIFETIMES: Lifetimes = Lifetimes {
    authority: SignedDuration::from_hours(100 * 24),
    certificate: SignedDuration::from_hours(80 * 24),
};

/// An age at which the certificate is due, and one at which the CA is.
const CERTIFICATE_DUE: SignedDuration = SignedDuration::from_hours(55 * 24);
const AUTHORITY_DUE: SignedDuration = SignedDuration::from_hours(75 * 24);

/// Nothing waits longer than it has to. An API server here has two seconds to hear of a
/// new caBundle.
const PACE: Pace = Pace {
    look: Duration::from_millis(500),
    retry: Duration::from_millis(200),
    pause: Duration::from_millis(50),
    settled: Duration::from_secs(2),
    forgotten: Duration::from_secs(3600),
};

/// What the replicas say is wrong.
type Failures = [Option<Arc<String>>; 2];

/// How far the clock of the replicas is behind, in seconds.
type Behind = Arc<AtomicI64>;

/// Allows everything, and counts.
struct Allowing(Arc<AtomicU64>);

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
        self.0.fetch_add(1, Ordering::Relaxed);
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

/// A server with a managed certificate, as one of several.
struct Replica {
    certificates: Arc<Certificates>,
    url: String,
    answered: Arc<AtomicU64>,
}

impl Replica {
    fn start(plane: &ControlPlane, client: kube::Client, behind: &Behind) -> Self {
        let certificates = Arc::new(Certificates::default());
        let answered = Arc::new(AtomicU64::new(0));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut options = Options::new(any, any);
        // New connections all the time, as only those see a new certificate.
        options.limits.age = Duration::from_millis(500);
        let server = plane
            .block_on(Server::start(
                &options,
                Arc::clone(&certificates) as _,
                Allowing(Arc::clone(&answered)),
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
        let (into, behind) = (Arc::clone(&certificates), Arc::clone(behind));
        plane.runtime().spawn(async move {
            let now = || {
                let behind = SignedDuration::from_secs(behind.load(Ordering::Relaxed));
                Timestamp::now() - behind
            };
            managed.follow(client, &into, now, |_| ()).await;
        });
        Self {
            certificates,
            url,
            answered,
        }
    }
}

struct Snapshot<'a> {
    plane: &'a ControlPlane,
    replicas: [Replica; 2],
    behind: Behind,
}

impl Snapshot<'_> {
    fn set_age(&self, age: SignedDuration) {
        let behind = AUTHORITY_DUE - age;
        self.behind.store(behind.as_secs(), Ordering::Relaxed);
    }

    /// The Secret's values, decoded.
    fn secret(&self) -> Option<Value> {
        let get = ["get", "secret", SECRET, "-n", NAMESPACE, "-o=json"];
        let got = self.plane.kubectl(&get, None);
        let secret: Value = serde_json::from_str(&got.stdout).ok()?;
        Some(secret["data"].clone())
    }

    fn authority(&self) -> Value {
        self.secret().unwrap()["ca.crt"].clone()
    }

    /// The authorities in every caBundle, in PEM.
    fn bundles(&self) -> Vec<String> {
        KINDS
            .iter()
            .flat_map(|kind| {
                let got = self.plane.get(&[*kind, NAMESPACE]);
                got["webhooks"].as_array().unwrap().clone()
            })
            .map(|webhook| {
                let bundle = webhook["clientConfig"]["caBundle"].clone();
                let bundle: Option<ByteString> = serde_json::from_value(bundle).unwrap();
                String::from_utf8(bundle.unwrap_or_default().0).unwrap()
            })
            .collect()
    }

    /// Waits until both replicas show one certificate, and another than `before`.
    fn until_served(&self, before: Option<&ServingPair>) -> Arc<ServingPair> {
        harness::wait_until("both replicas to show a new certificate", DEADLINE, || {
            let [one, two] = self.replicas.each_ref().map(|it| it.certificates.current());
            let (Some(one), Some(two)) = (one, two) else {
                return Err(format!("{:?}", self.failures()));
            };
            let new = before.is_none_or(|it| it.not_after() != one.not_after());
            if one.not_after() == two.not_after() && new {
                Ok(one)
            } else {
                Err(format!("{one:?} {two:?} {:?}", self.failures()))
            }
        })
        .unwrap()
    }

    fn failures(&self) -> Failures {
        self.replicas.each_ref().map(|it| it.certificates.failure())
    }

    fn until_failures(&self, say: &str, done: impl Fn(&Failures) -> bool) {
        let what = format!("both replicas to say {say}");
        harness::until(&what, DEADLINE, || {
            let failures = self.failures();
            harness::seen(done(&failures), failures)
        });
    }

    fn answered(&self) -> [u64; 2] {
        let count = |it: &Replica| it.answered.load(Ordering::Relaxed);
        self.replicas.each_ref().map(count)
    }

    /// Registers the webhooks of the base, the mutating ones at the first replica and
    /// the validating ones at the second.
    fn register(&self, failure_policy: &str) {
        register_changed(self.plane, BASE, |kind, webhook| {
            let replica = KINDS.iter().position(|it| *it == kind).unwrap();
            let path = webhook["clientConfig"]["service"]["path"].clone();
            let url = format!("{}{}", self.replicas[replica].url, path.as_str().unwrap());
            webhook["clientConfig"] = json!({"url": url});
            webhook["failurePolicy"] = json!(failure_policy);
            webhook["timeoutSeconds"] = json!(30);
        });
    }

    /// Does it while Deployments with a claim are created all the time, and goes on
    /// until both replicas were asked often afterwards. No creation may fail.
    fn under_requests<T>(&self, what: &str, act: impl FnOnce() -> T) -> T {
        let (stop, mut stopped) = watch::channel(false);
        let deployments = Api::<Deployment>::namespaced(self.plane.client(), "default");
        let asking = self.plane.runtime().spawn(async move {
            let dry_run = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let deployment = object(json!({"kind": "Deployment", "uses": ["data"]}));
            let deployment: Deployment = serde_json::from_value(deployment).unwrap();
            let (mut made, mut failed) = (0, Vec::new());
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            loop {
                tokio::select! {
                    _ = stopped.changed() => return (made, failed),
                    _ = pace.tick() => {}
                }
                made += 1;
                if let Err(error) = deployments.create(&dry_run, &deployment).await {
                    failed.push(error.to_string());
                }
            }
        });
        let done = act();
        let before = self.answered();
        harness::until("both replicas to be asked", DEADLINE, || {
            let now = self.answered();
            let mut both = now.iter().zip(before);
            harness::seen(both.all(|(now, before)| *now >= before + 25), now)
        });
        stop.send(true).unwrap();
        let (made, failed) = self.plane.block_on(asking).unwrap();
        eprintln!("{what}: {made} requests, {} failed", failed.len());
        assert!(failed.is_empty(), "{what}: {failed:#?}");
        done
    }
}

/// A client with the rights of the guard.
fn client(plane: &ControlPlane) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig(plane)).unwrap();
    let options = KubeConfigOptions::default();
    plane.block_on(async {
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        kube::Client::try_from(config.unwrap()).unwrap()
    })
}

/// A control plane of its own: webhook configurations are for the whole cluster.
#[test]
fn nothing_that_happens_to_certificates_fails_an_admission() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    account(&plane);
    let behind = Behind::new(AtomicI64::new(AUTHORITY_DUE.as_secs()));
    let start = || Replica::start(&plane, client(&plane), &behind);
    let cluster = Snapshot {
        plane: &plane,
        replicas: [start(), start()],
        behind: Arc::clone(&behind),
    };
    // Both begin at once, and one Secret comes of it. Until then objects pass unjudged,
    // as the manifests have it.
    let first = cluster.under_requests("first start, two replicas at once", || {
        cluster.register("Ignore");
        cluster.until_served(None)
    });
    assert!(first.not_before() < Timestamp::now() - AUTHORITY_DUE);
    let authority = cluster.authority();

    // From here on, every request has to be answered by both.
    cluster.register("Fail");
    let second = cluster.under_requests("certificate renewed", || {
        cluster.set_age(CERTIFICATE_DUE);
        cluster.until_served(Some(&first))
    });
    assert_eq!(cluster.authority(), authority, "the CA stays");

    let third = cluster.under_requests("authority renewed", || {
        cluster.set_age(AUTHORITY_DUE);
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

    let fifth = cluster.under_requests("rubbish in the Secret", || {
        let rubbish = json!({"data": {"tls.crt": "Zm9v", "ca.key": "YmFy"}});
        plane.run(&format!(
            "patch secret {SECRET} -n {NAMESPACE} -p {rubbish}"
        ));
        cluster.until_served(Some(&fourth))
    });

    // What is in use stays, and the log and /readyz say what is missing.
    let rights = repository("manifests/base/certificates.yaml");
    let rights = rights.to_str().unwrap();
    cluster.under_requests("a right is missing", || {
        plane.kubectl(&["delete", "-f", rights], None).success();
        cluster.until_failures("that a right is missing", |failures| {
            let named = |it: &String| it.contains(SECRET) && it.contains("certificates.yaml");
            failures.iter().flatten().filter(|it| named(it)).count() == 2
        });
    });
    plane.kubectl(&["apply", "-f", rights], None).success();
    let is_well = |failures: &Failures| failures.iter().all(Option::is_none);
    cluster.until_failures("that all is well", is_well);

    // Nobody can ask meanwhile, so this is about what comes after.
    plane.api_server().signal("STOP");
    cluster.until_failures("that the API server is away", |failures| {
        failures.iter().all(Option::is_some)
    });
    plane.api_server().signal("CONT");
    cluster.until_failures("that all is well again", is_well);
    cluster.under_requests("API server away", || ());
    let after = cluster.until_served(None);
    assert_eq!(after.not_after(), fifth.not_after());

    // The API server hears of the wrong one before anybody can right it, so that a few
    // objects pass unjudged.
    cluster.register("Ignore");
    let foreign = plane.pki.authority_pem();
    cluster.under_requests("caBundle overwritten", || {
        let bundle = ByteString(foreign.clone().into_bytes());
        let wrong = json!({"webhooks": [{
            "name": "workloads.multi-attach-guard.dev",
            "clientConfig": {"caBundle": bundle},
        }]});
        for kind in KINDS {
            plane.run(&format!("patch {kind} {NAMESPACE} -p {wrong}"));
        }
        let own = || {
            let authority: ByteString = serde_json::from_value(cluster.authority()).unwrap();
            String::from_utf8(authority.0).unwrap()
        };
        harness::until("the caBundles to be right", DEADLINE, || {
            let (own, bundles) = (own(), cluster.bundles());
            let right = bundles.iter().all(|it| it.contains(&own));
            harness::seen(right, bundles)
        });
    });
}

/// The program itself, with the rights and the argument of the manifests.
#[test]
fn the_program_manages_its_certificate_with_the_rights_it_has() {
    let plane = harness::or_skip!(harness::start_control_plane(Needs::ApiServer));
    account(&plane);
    let arguments = [
        "--manage-certs",
        "--dns-name=127.0.0.1",
        "--log-format=json",
    ];
    let options = options(&plane, &arguments);
    let (_program, _, admin) = plane.serve("managed", &options);
    let exposition = plane.metrics(&admin);
    for name in [
        "multi_attach_guard_certificate_expiry_timestamp_seconds ",
        "multi_attach_guard_certificate_authority_expiry_timestamp_seconds ",
    ] {
        let value = exposition.lines().find_map(|it| it.strip_prefix(name));
        let expires: f64 = value.unwrap_or(name).parse().unwrap();
        assert!(expires > (Timestamp::now() + DAY * 89).as_second() as f64);
    }

    let account = format!("--as=system:serviceaccount:{NAMESPACE}:multi-attach-guard");
    for (question, expected) in [
        ("get secret/OWN -n multi-attach-guard", true),
        ("update secret/OWN -n multi-attach-guard", true),
        ("delete secret/OWN -n multi-attach-guard", false),
        ("get secret/other -n multi-attach-guard", false),
        ("update secret/other -n multi-attach-guard", false),
        ("list secrets -n multi-attach-guard", false),
        ("get secret/OWN -n default", false),
        (
            "patch validatingwebhookconfigurations/multi-attach-guard",
            true,
        ),
        ("patch validatingwebhookconfigurations/other", false),
    ] {
        let question = format!("auth can-i {} {account}", question.replace("OWN", SECRET));
        let words: Vec<&str> = question.split(' ').collect();
        let answer = plane.kubectl(&words, None);
        assert_eq!(answer.status == 0, expected, "{answer:#?}");
    }
}
