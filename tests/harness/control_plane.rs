//! etcd, kube-apiserver and, on request, kube-controller-manager and kube-scheduler, on loopback
//! ports of this machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{Method, Request};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::asking;
use super::kubectl::kubeconfig;
use super::machine::{patient, unhurried};
use super::pki::Pki;
use super::places::Place;
use super::process::{Program, free_port, says_port_taken};
use super::programs::{Programs, minor};
use super::{Needs, seen, wait_until};

/// The time limit from start to ready for each program. It is generous, because the machine may be
/// compiling something else at the same time.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(120);

/// Kubernetes' programs collect garbage less often, up to a memory limit, because tests are short
/// of processor time: collection takes an eighth of it in the scenarios.
pub(super) const THRIFT: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "1GiB")];

/// The administrator of the cluster, with a certificate for users and a token for the tests
/// themselves.
const ADMIN: &str = "admin";

/// This account distinguishes the controller manager's requests from a user's.
const MANAGER: &str = "system:kube-controller-manager";

/// The time limit for waiting until the API server is no longer busy.
const CALM_WITHIN: Duration = Duration::from_secs(120);

/// An API server that answers a get within this time is not busy.
const CALM: Duration = Duration::from_secs(1);

/// The time after which a silent node counts as dead: seconds instead of Kubernetes' usual minute.
/// On a slow machine it is longer, because a live node may be late.
const NODE_GRACE: Duration = Duration::from_secs(12);

/// The number of attempts to start a program if another process takes its port.
const ATTEMPTS: usize = 5;

/// The programs to start besides etcd and kube-apiserver, and extra flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Start kube-controller-manager and kube-scheduler too.
    pub(crate) controllers: bool,
    /// Further flags for kube-apiserver.
    pub(crate) api_server_flags: Vec<String>,
    /// Further flags for kube-controller-manager.
    pub(crate) controller_manager_flags: Vec<String>,
}

impl Options {
    /// The options for [`Needs`]. With controllers, a StatefulSet may be Recreate, as it may by
    /// default since 1.38.
    pub(crate) fn of(needs: Needs) -> Self {
        let controllers = needs == Needs::Controllers;
        let gates = match minor().as_str() {
            "1.37" if controllers => {
                vec!["--feature-gates=StatefulSetRecreateStrategy=true".to_owned()]
            }
            _ => Vec::new(),
        };
        Self { controllers, api_server_flags: gates.clone(), controller_manager_flags: gates }
    }
}

/// A running control plane. Dropping it ends exactly the programs it started.
pub(crate) struct ControlPlane {
    pub(super) programs: &'static Programs,
    pub(super) folder: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(crate) pki: Pki,
    url: String,
    controllers: bool,
    http: reqwest::Client,
    client: kube::Client,
    namespaces: AtomicU32,
    // Dropped in this order: the controllers first, etcd last.
    scheduler: Option<Program>,
    controller_manager: Option<Program>,
    api_server: Program,
    etcd: Program,
    place: Mutex<Option<Place>>,
    /// Serializes the tests that wait for a calm API server.
    turn: Mutex<()>,
    // Last: the client's connection runs on it.
    runtime: Runtime,
}

/// A control plane for values that are never dropped. Dropping this value ends it.
pub(crate) struct Lent(pub(crate) &'static ControlPlane);

impl Lent {
    pub(crate) fn new(plane: ControlPlane) -> Self {
        Self(Box::leak(Box::new(plane)))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl ControlPlane {
    /// Starts the programs and waits until each says that it is ready.
    ///
    /// # Errors
    ///
    /// A sentence that names the program at fault, with the tail of its log.
    pub(crate) fn start(programs: &'static Programs, options: &Options) -> Result<Self, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let place = Place::take()?;
        let folder = tempfile::Builder::new()
            .prefix("control-plane-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .map_err(|error| format!("There is no folder to work in: {error}."))?
            .keep();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| format!("The client's runtime did not start: {error}."))?;
        // In the API server's folder, so that it is removed together with it.
        let pki = Pki::create(&folder.join("kube-apiserver"));
        let http = pki.http_client_builder().build().unwrap();
        let launch = Launch {
            programs,
            folder: &folder,
            pki: &pki,
            token_keys: &pki.token_keys(),
            http: &http,
            runtime: &runtime,
        };

        let (etcd, etcd_port) = launch.etcd()?;
        let (api_server, port) = launch.api_server(etcd_port, options)?;
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig_with = |name: &str, credentials: Value| {
            let file = folder.join("kube-apiserver").join(name);
            let cluster = json!({ "server": url, "certificate-authority": pki.authority_file() });
            std::fs::write(&file, kubeconfig(&cluster, &credentials)).unwrap();
            file
        };
        let with_token =
            |user: &str| kubeconfig_with(&format!("{user}.kubeconfig"), json!({ "token": user }));
        let account = pki.client(ADMIN, "system:masters");
        let credentials = json!({
            "client-certificate": account.certificate,
            "client-key": account.key,
        });
        let admin = kubeconfig_with("kubeconfig", credentials);
        let own = with_token(ADMIN);
        let client = runtime.block_on(asking::client(&own, None))?;
        let (controller_manager, scheduler) = if options.controllers {
            let manager = launch.controller_manager(&with_token(MANAGER), options)?;
            (Some(manager), Some(launch.scheduler(&own)?))
        } else {
            (None, None)
        };
        let plane = Self {
            programs,
            kubeconfig: admin,
            pki,
            url,
            controllers: options.controllers,
            http,
            client,
            namespaces: AtomicU32::new(0),
            scheduler,
            controller_manager,
            api_server,
            etcd,
            place: Mutex::new(Some(place)),
            turn: Mutex::default(),
            runtime,
            folder,
        };
        plane.wait_for_default_namespace()?;
        plane.wait_for_schemas()?;
        Ok(plane)
    }

    /// The API server's address, `https://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn running(&self) -> impl Iterator<Item = &Program> {
        [&self.scheduler, &self.controller_manager]
            .into_iter()
            .flatten()
            .chain([&self.api_server, &self.etcd])
    }

    /// Ends all of its programs and frees its place for other processes.
    fn end(&self) {
        self.running().for_each(Program::end);
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits until the API server answers a get within a second, so that the caller does not
    /// overload it. If it stays busy for minutes, the caller goes on anyway.
    pub(crate) fn until_calm(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = wait_until("the API server to be calm", CALM_WITHIN, || {
            let asked = Instant::now();
            let namespaces = kube::Api::<Namespace>::all(self.client());
            let answer = self.block_on(namespaces.get("default"));
            seen(answer.is_ok() && asked.elapsed() < CALM, asked)
        });
    }

    /// A kubeconfig for a cluster administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client with the same rights. Its calls must run on [`Self::block_on`] or
    /// [`Self::runtime`].
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The runtime of [`Self::client`].
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Runs a client's calls from a test that is otherwise blocking.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// An HTTP client that trusts this control plane's CA and nothing else.
    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Restarts the API server on the same port after it has ended, and waits until it says that it
    /// is ready.
    ///
    /// # Errors
    ///
    /// A sentence with the tail of its log.
    pub(crate) fn start_api_server_again(&self) -> Result<(), String> {
        let again = self.api_server.start_again();
        again.map_err(|error| format!("kube-apiserver cannot be started: {error}."))?;
        self.until_api_server_ready()
    }

    /// Waits until the API server says that it is ready.
    ///
    /// # Errors
    ///
    /// A sentence with the tail of its log.
    pub(crate) fn until_api_server_ready(&self) -> Result<(), String> {
        let ready = format!("{}/readyz", self.url);
        self.api_server.until_ready(&ready, &self.http, &self.runtime)
    }

    /// The API server's program, to pause (`STOP`) and resume it (`CONT`) or to read its log.
    pub(crate) fn api_server(&self) -> &Program {
        &self.api_server
    }

    /// Asserts that none of its programs has ended; otherwise every later wait would fail.
    pub(crate) fn assert_runs(&self) {
        for program in self.running() {
            assert_eq!(program.exited(), None, "{}", program.log_tail());
        }
    }

    /// The path of the program with this name, for example `kubectl`.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    /// Writes a file that is removed together with the control plane.
    pub(crate) fn write_file(&self, name: &str, content: &str) -> PathBuf {
        let file = self.folder.join("kube-apiserver").join(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    /// Makes a namespace that nobody else uses, named `PREFIX-NUMBER` and ready for pods, as soon
    /// as the API server is calm.
    pub(crate) fn namespace(&self, prefix: &str) -> String {
        self.labelled_namespace(prefix, &json!({}))
    }

    /// Makes a namespace like [`Self::namespace`], with these labels.
    pub(crate) fn labelled_namespace(&self, prefix: &str, labels: &Value) -> String {
        let name = format!("{prefix}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        let manifest = json!({ "metadata": { "name": name, "labels": labels } });
        self.until_calm();
        self.block_on(async {
            let namespaces = kube::Api::<Namespace>::all(self.client());
            let object = serde_json::from_value(manifest).unwrap();
            let as_admin = PostParams::default();
            namespaces.create(&as_admin, &object).await.unwrap();
            if self.controllers {
                // Otherwise pods would wait for the controller manager, which also makes this
                // account and may be first.
                let accounts = kube::Api::<ServiceAccount>::namespaced(self.client(), &name);
                let default = json!({ "metadata": { "name": "default" } });
                let account = serde_json::from_value(default).unwrap();
                if let Err(error) = accounts.create(&as_admin, &account).await {
                    let there = matches!(
                        &error,
                        kube::Error::Api(response) if response.is_already_exists()
                    );
                    assert!(there, "{error}");
                }
            }
        });
        name
    }

    /// Sends an object to the API server and drops the answer.
    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        object: &Value,
    ) -> Result<(), kube::Error> {
        let request = asking::request(method, path, object);
        self.block_on(self.client().request_text(request)).map(drop)
    }

    /// All metrics of the API server.
    pub(crate) fn exposition(&self) -> String {
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        self.block_on(self.client().request_text(request)).unwrap()
    }

    /// Waits for the schemas. The API server builds them on the first request, which takes long on
    /// a busy machine, and kubectl gives up after half a minute.
    fn wait_for_schemas(&self) -> Result<(), String> {
        wait_until("the API server's schemas", READY_WITHIN, || {
            let ask = Request::get("/openapi/v2").body(Vec::new()).unwrap();
            let answer = self.block_on(self.client().request_text(ask));
            answer.map(drop).map_err(|error| error.to_string())
        })
    }

    /// Waits for the default namespace and, with controllers, for its default service account: pods
    /// are refused until the controller manager has made it. Without controllers that check is off.
    fn wait_for_default_namespace(&self) -> Result<(), String> {
        const DEFAULT: &str = "default";
        wait_until("the default namespace", READY_WITHIN, || {
            self.block_on(async {
                let namespaces = kube::Api::<Namespace>::all(self.client());
                namespaces.get(DEFAULT).await?;
                if self.controllers {
                    let accounts = kube::Api::<ServiceAccount>::default_namespaced(self.client());
                    accounts.get(DEFAULT).await?;
                }
                Ok(())
            })
            .map_err(|error: kube::Error| error.to_string())
        })
    }
}

/// The scheduler of pods that name their preferred node: see `scheduler.yaml`.
pub(crate) const STEERED_SCHEDULER: &str = "steered";

/// The inputs that starting any of the programs needs.
struct Launch<'a> {
    programs: &'a Programs,
    folder: &'a Path,
    pki: &'a Pki,
    token_keys: &'a (PathBuf, PathBuf),
    http: &'a reqwest::Client,
    runtime: &'a Runtime,
}

impl Launch<'_> {
    fn etcd(&self) -> Result<(Program, u16), String> {
        self.attempt("etcd", |port, folder| {
            let peers = format!("http://127.0.0.1:{}", free_port());
            let clients = format!("http://127.0.0.1:{port}");
            let flags = vec![
                format!("--data-dir={}/data", folder.display()),
                format!("--listen-client-urls={clients}"),
                format!("--advertise-client-urls={clients}"),
                format!("--listen-peer-urls={peers}"),
                format!("--initial-advertise-peer-urls={peers}"),
                format!("--initial-cluster=default={peers}"),
                // No data needs to survive a power cut.
                "--unsafe-no-fsync".to_owned(),
            ];
            (flags, format!("{clients}/health"))
        })
    }

    fn api_server(&self, etcd: u16, options: &Options) -> Result<(Program, u16), String> {
        // Tokens for clients that make many requests: checking a certificate with each request
        // takes a twentieth of the API server's work.
        let tokens = self.folder.join("kube-apiserver/tokens.csv");
        let lines = [ADMIN, MANAGER].map(|user| format!("{user},{user},{user},system:masters\n"));
        std::fs::write(&tokens, lines.concat())
            .map_err(|error| format!("{} cannot be written: {error}.", tokens.display()))?;
        self.attempt("kube-apiserver", |port, folder| {
            let mut flags = self.serving_flags(port, folder);
            flags.extend([
                format!("--etcd-servers=http://127.0.0.1:{etcd}"),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--client-ca-file={}", self.pki.authority_file().display()),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", self.token_keys.1.display()),
                format!("--service-account-signing-key-file={}", self.token_keys.0.display()),
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--allow-privileged=true".to_owned(),
                format!("--token-auth-file={}", tokens.display()),
                "--endpoint-reconciler-type=none".to_owned(),
            ]);
            // No test has a quota, and looking for one is the first step that fails on a busy
            // machine.
            let unwanted = if options.controllers {
                // This plugin taints a new node until the controller manager has seen that it is
                // ready, which costs three changes per node.
                "TaintNodesByCondition"
            } else {
                // Nobody makes the service accounts that this plugin would wait for.
                "ServiceAccount"
            };
            flags.push(format!("--disable-admission-plugins=ResourceQuota,{unwanted}"));
            flags.extend(options.api_server_flags.iter().cloned());
            (flags, format!("https://127.0.0.1:{port}/readyz"))
        })
    }

    fn controller_manager(&self, kubeconfig: &Path, options: &Options) -> Result<Program, String> {
        let (program, _) = self.attempt("kube-controller-manager", |port, folder| {
            let mut flags = self.component_flags(kubeconfig, port, folder);
            let grace = unhurried(NODE_GRACE).as_secs();
            flags.extend([
                format!("--service-account-private-key-file={}", self.token_keys.0.display()),
                format!("--root-ca-file={}", self.pki.authority_file().display()),
                "--use-service-account-credentials=false".to_owned(),
                // The namespace controller needs a hundred requests to list the contents of a
                // deleted namespace, and the other two write data to every namespace and node that
                // no test reads.
                "--controllers=*,-namespace-controller,-root-ca-certificate-publisher-controller,\
                 -ttl-controller"
                    .to_owned(),
                format!("--node-monitor-grace-period={grace}s"),
                "--node-monitor-period=1s".to_owned(),
                format!("--node-startup-grace-period={grace}s"),
                // Many tests share one control plane; with the usual 20 requests a second they
                // would wait for each other.
                "--kube-api-qps=500".to_owned(),
                "--kube-api-burst=1000".to_owned(),
            ]);
            flags.extend(options.controller_manager_flags.iter().cloned());
            (flags, format!("https://127.0.0.1:{port}/healthz"))
        })?;
        Ok(program)
    }

    /// Starts the scheduler with its defaults and a second profile.
    fn scheduler(&self, kubeconfig: &Path) -> Result<Program, String> {
        let (program, _) = self.attempt("kube-scheduler", |port, folder| {
            let mut flags = self.component_flags(kubeconfig, port, folder);
            let file = self.folder.join("kube-apiserver/scheduler.yaml");
            // If the file cannot be written, the scheduler reports that it is missing.
            let configuration = include_str!("scheduler.yaml");
            let kubeconfig = kubeconfig.display().to_string();
            let _ = std::fs::write(&file, configuration.replace("KUBECONFIG", &kubeconfig));
            flags.push(format!("--config={}", file.display()));
            (flags, format!("https://127.0.0.1:{port}/healthz"))
        })?;
        Ok(program)
    }

    /// The flags of all programs except etcd.
    fn serving_flags(&self, port: u16, folder: &Path) -> Vec<String> {
        let serving = self.pki.serving(&format!("serving-{port}"));
        vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", serving.certificate.display()),
            format!("--tls-private-key-file={}", serving.key.display()),
            format!("--cert-dir={}", folder.display()),
        ]
    }

    fn component_flags(&self, kubeconfig: &Path, port: u16, folder: &Path) -> Vec<String> {
        let mut flags = self.serving_flags(port, folder);
        let of_a_kubeconfig =
            ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
        flags.extend(of_a_kubeconfig.map(|flag| format!("--{flag}={}", kubeconfig.display())));
        flags.push("--leader-elect=false".to_owned());
        flags
    }

    /// Starts a program on a free port, by [`Program::on_free_ports`]. `plan` turns a port and the
    /// program's own folder into its flags and the address that answers 200 once the program is
    /// ready.
    fn attempt(
        &self,
        name: &str,
        plan: impl Fn(u16, &Path) -> (Vec<String>, String),
    ) -> Result<(Program, u16), String> {
        let folder = self.folder.join(name);
        Program::on_free_ports(self.http, self.runtime, || {
            let port = free_port();
            let (flags, ready) = plan(port, &folder);
            let program = Program::start(name, &self.programs.path(name), &flags, &THRIFT, &folder)
                .map_err(|error| format!("{name} cannot be started: {error}."))?;
            Ok((program, ready, port))
        })
    }
}

impl Program {
    /// Starts a program on free ports and waits until its address answers 200. It tries again with
    /// other ports if another process has taken the first. `start` returns the program, that
    /// address and its place.
    ///
    /// # Errors
    ///
    /// A sentence with the last observation and the tail of the program's log.
    pub(super) fn on_free_ports<T>(
        http: &reqwest::Client,
        runtime: &Runtime,
        start: impl Fn() -> Result<(Self, String, T), String>,
    ) -> Result<(Self, T), String> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let (program, ready, place) = start()?;
            match program.until_ready(&ready, http, runtime) {
                Ok(()) => return Ok((program, place)),
                Err(reason) if says_port_taken(&program.log()) => last = reason,
                Err(reason) => return Err(reason),
            }
        }
        Err(last)
    }

    /// Waits until `url` answers 200. It fails early if the program ends first.
    fn until_ready(
        &self,
        url: &str,
        http: &reqwest::Client,
        runtime: &Runtime,
    ) -> Result<(), String> {
        let limit = patient(Duration::from_secs(5));
        wait_until(&format!("{url} to answer 200"), READY_WITHIN, || {
            if let Some(status) = self.exited() {
                return Ok(Err(format!("It ended with {status} before {url} answered")));
            }
            let answer = runtime.block_on(async { http.get(url).timeout(limit).send().await });
            match answer {
                Ok(answer) if answer.status().as_u16() == 200 => Ok(Ok(())),
                Ok(answer) => Err(answer.status().to_string()),
                Err(error) => Err(error.to_string()),
            }
        })
        .flatten()
        .map_err(|reason| format!("{reason}. {}", self.log_tail()))
    }
}
