//! The project's own server, started as a user would start it.

use std::path::Path;

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams};
use serde_json::Value;

use super::control_plane::{ControlPlane, READY_WITHIN};
use super::process::{Program, free_port};
use super::{seen, until};

/// The options of `multi-attach-guard serve`.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuardOptions {
    /// Arguments after `serve --listen … --admin …`.
    pub(crate) arguments: Vec<String>,
    /// Further environment; `KUBECONFIG` already points to the control plane.
    pub(crate) environment: Vec<(String, String)>,
}

impl GuardOptions {
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        self.arguments.extend(arguments);
        self
    }

    /// Adds a policy, in a file with this name.
    pub(crate) fn policy(self, plane: &ControlPlane, name: &str, policy: &str) -> Self {
        let file = plane.write_file(&format!("{name}.policy.yaml"), policy);
        self.with(&[&format!("--config={}", file.display())])
    }

    /// Uses the credentials of this kubeconfig.
    pub(crate) fn kubeconfig(mut self, file: &Path) -> Self {
        self.environment.push(("KUBECONFIG".to_owned(), file.display().to_string()));
        self
    }
}

/// The policy in a ConfigMap of `manifests/`.
pub(crate) fn policy_of(name: &str) -> String {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/manifests"));
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let map: Value = serde_saphyr::from_str(&text).unwrap();
    map["data"]["policy.yaml"].as_str().unwrap().to_owned()
}

/// A running server. Dropping it kills it; [`Program::signal`] and [`Program::wait`] end it
/// gracefully.
pub(crate) struct Guard {
    /// The process, with its log.
    pub(crate) program: Program,
    /// The address for reviews: `https://127.0.0.1:PORT`.
    pub(crate) url: String,
    /// The address for probes and metrics: `http://127.0.0.1:PORT`.
    pub(crate) admin_url: String,
}

impl Guard {
    /// Waits until the guard has seen every volume and class that exists now. This works only if
    /// none of them is deleted in the meantime.
    ///
    /// # Panics
    ///
    /// If the guard does not see them in time.
    pub(crate) fn until_heard(&self, plane: &ControlPlane) {
        let all = ListParams::default();
        let there = plane.block_on(async {
            let volumes = Api::<PersistentVolume>::all(plane.client());
            let classes = Api::<StorageClass>::all(plane.client());
            [
                volumes.list_metadata(&all).await.unwrap().items.len(),
                classes.list_metadata(&all).await.unwrap().items.len(),
            ]
        });
        until("the guard to hear of what is there", READY_WITHIN, || {
            let heard = ["persistentvolumes", "storageclasses"].map(|resource| {
                let series = format!("multi_attach_guard_view_objects{{resource=\"{resource}\"}}");
                self.count(plane, &series)
            });
            let has_all = heard.iter().zip(there).all(|(heard, there)| *heard >= there as u64);
            seen(has_all, (heard, there))
        });
    }

    /// Asserts that the guard has not panicked: it continues after a panic, and a client sees only
    /// that its webhook failed.
    ///
    /// # Panics
    ///
    /// If the log mentions a panic, with those lines of the log.
    pub(crate) fn nothing_panicked(&self) {
        let log = self.program.log();
        let panics: Vec<&str> = log.lines().filter(|line| line.contains("panic")).collect();
        assert!(panics.is_empty(), "The guard panicked: {panics:#?}");
    }

    /// The response to an AdmissionReview.
    ///
    /// # Errors
    ///
    /// The reason, if the guard sends no AdmissionReview back.
    pub(crate) fn validate(&self, plane: &ControlPlane, review: &Value) -> Result<Value, String> {
        let address = format!("{}/validate?timeout=10s", self.url);
        let request = plane.http().post(address).json(review);
        let mut answer = plane
            .block_on(async { request.send().await?.error_for_status()?.json::<Value>().await })
            .map_err(|error| error.to_string())?;
        Ok(answer["response"].take())
    }

    /// All metrics that the guard has at `/metrics`.
    pub(crate) fn metrics(&self, plane: &ControlPlane) -> String {
        plane.metrics(&self.admin_url)
    }

    /// The sum of all counters whose metrics line begins with `series`.
    pub(crate) fn count(&self, plane: &ControlPlane, series: &str) -> u64 {
        let metrics = self.metrics(plane);
        let lines = metrics.lines().filter(|line| line.starts_with(series));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }
}

impl ControlPlane {
    /// All metrics of the guard at this admin address.
    pub(crate) fn metrics(&self, admin_url: &str) -> String {
        self.page(&format!("{admin_url}/metrics"))
    }

    /// A page of a guard's admin address.
    pub(crate) fn page(&self, url: &str) -> String {
        self.block_on(self.said_at(url))
    }

    async fn said_at(&self, url: &str) -> String {
        let answer = self.http().get(url).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// Starts the server with a certificate of this control plane's CA and waits until it says that
    /// it is ready.
    ///
    /// # Panics
    ///
    /// If it does not start, with the tail of its log.
    pub(crate) fn guard(&self, name: &str, options: &GuardOptions) -> Guard {
        let pair = self.pki.serving(&format!("guard-{name}"));
        let mut options = options.clone();
        options.arguments.extend([
            format!("--tls-cert={}", pair.certificate.display()),
            format!("--tls-key={}", pair.key.display()),
            // Tests cover every kind of finding, also for bare pods.
            "--bare-pods".to_owned(),
        ]);
        let (program, url, admin_url) = self.serve(name, &options);
        Guard { program, url, admin_url }
    }

    /// Starts the server with the certificate that the options name; returns the process and the
    /// two addresses.
    pub(crate) fn serve(&self, name: &str, options: &GuardOptions) -> (Program, String, String) {
        let kubeconfig = self.kubeconfig.display().to_string();
        let further = options.environment.iter();
        let mut environment = vec![("KUBECONFIG", kubeconfig.as_str())];
        environment.extend(further.map(|(variable, value)| (variable.as_str(), value.as_str())));
        let started = Program::on_free_ports(self.http(), self.runtime(), || {
            let [listen, admin] =
                [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
            let mut arguments =
                vec!["serve".to_owned(), format!("--listen={listen}"), format!("--admin={admin}")];
            arguments.extend(options.arguments.iter().cloned());
            let binary = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
            let folder = self.folder.join(format!("guard-{name}"));
            let program =
                Program::start("multi-attach-guard", binary, &arguments, &environment, &folder);
            let admin = format!("http://{admin}");
            let addresses = (format!("https://{listen}"), admin.clone());
            Ok((program.unwrap(), admin + "/readyz", addresses))
        });
        let (program, (url, admin_url)) =
            started.unwrap_or_else(|reason| panic!("The guard did not start. {reason}"));
        (program, url, admin_url)
    }
}
