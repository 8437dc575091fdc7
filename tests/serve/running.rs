//! Starting the binary and talking to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use reqwest::{Client, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::serving::{in_time, trusting, until};

/// The folder of the repository; paths of examples are relative to it.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const CA: &str = "ca.pem";
const POLICY: &str = "policy.yaml";

type Log = Box<dyn AsyncRead + Send + Unpin>;

/// A running `serve` with its own certificate, on loopback ports that the system chooses. Dropping
/// it kills it.
pub(crate) struct Running {
    pub(crate) webhook: SocketAddr,
    pub(crate) admin: SocketAddr,
    process: Child,
    log: Lines<BufReader<Log>>,
    client: Client,
    folder: TempDir,
}

/// The command, not yet started.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
    command
        .args(arguments)
        .current_dir(ROOT)
        .env_remove("RUST_LOG")
        // The test must not use a cluster that is configured on this machine.
        .env("KUBECONFIG", "/no/such/kubeconfig")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Starts `serve` with the facts in `examples/` and further arguments.
pub(crate) async fn serve(arguments: &[&str]) -> Running {
    let facts = ["--facts", "examples/facts"];
    serve_without_facts(&[facts.as_slice(), arguments].concat()).await
}

/// Starts it with a policy in the file [`Running::policy`].
pub(crate) async fn serve_with_policy(policy: &str) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(POLICY);
    std::fs::write(&file, policy).unwrap();
    let config = format!("--config={}", file.display());
    start(folder, &["--facts=examples/facts", &config]).await
}

/// Starts `serve` with these arguments only, and waits until it listens.
pub(crate) async fn serve_without_facts(arguments: &[&str]) -> Running {
    start(tempfile::tempdir().unwrap(), arguments).await
}

async fn start(folder: TempDir, arguments: &[&str]) -> Running {
    let ca = folder.path().join(CA);
    let write_ca = format!("--write-ca={}", ca.display());
    let base = ["serve", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0"];
    let more = ["--log-format=json", "--self-signed", &write_ca];
    let mut process = command(&[&base, &more, arguments].concat()).spawn().unwrap();
    let stderr: Log = Box::new(process.stderr.take().unwrap());
    let mut log = BufReader::new(stderr).lines();
    let listening = log_line(&mut log, "listening").await;
    let address = |field: &str| listening[field].as_str().unwrap().parse().unwrap();
    let (webhook, admin) = (address("webhook"), address("admin"));
    Running {
        webhook,
        admin,
        process,
        log,
        client: trusting(&std::fs::read(ca).unwrap()).build().unwrap(),
        folder,
    }
}

/// The next log line with a message that begins with this text.
async fn log_line(log: &mut Lines<BufReader<Log>>, message: &str) -> Value {
    let mut seen = String::new();
    in_time(message, async {
        while let Some(line) = log.next_line().await.unwrap() {
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            let text = event["message"].as_str().unwrap_or_default();
            if text.starts_with(message) {
                return event;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
        panic!("the log ended without {message:?}:\n{seen}")
    })
    .await
}

impl Running {
    /// The file of its policy.
    pub(crate) fn policy(&self) -> PathBuf {
        self.folder.path().join(POLICY)
    }

    /// Posts a body to `/mutate` or `/validate`.
    pub(crate) async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Response {
        self.client
            .post(format!("https://{}{path}", self.webhook))
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap()
    }

    /// The `response` of the answer to a review.
    pub(crate) async fn review(&self, path: &str, review: &Value) -> Value {
        let response = self.post(path, review.to_string()).await;
        let status = response.status();
        let body = response.bytes().await.unwrap();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let mut answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        answer["response"].take()
    }

    /// Status and text of a page of the admin port.
    pub(crate) async fn admin(&self, path: &str) -> (u16, String) {
        let url = format!("http://{}{path}", self.admin);
        let response = self.client.get(url).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Waits until a line of an admin page begins with this text.
    pub(crate) async fn until_admin(&self, path: &str, line: &str) {
        until(line, async || {
            let (_, text) = self.admin(path).await;
            text.lines().any(|each| each.starts_with(line))
        })
        .await;
    }

    /// Waits for the next log line with a message that begins with this text.
    pub(crate) async fn logged(&mut self, message: &str) -> Value {
        log_line(&mut self.log, message).await
    }

    /// The peak memory of the process, in bytes (`VmHWM` of `proc_pid_status(5)`).
    pub(crate) fn peak_memory(&self) -> usize {
        let process = self.process.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kib.parse::<usize>().unwrap() * 1024
    }

    /// Closes the reading end of the log, so that writing to it fails.
    pub(crate) fn close_log(&mut self) {
        self.log = BufReader::new(Box::new(tokio::io::empty()) as Log).lines();
    }

    /// Posts reviews without a pause, several at a time, until nobody listens; returns the number
    /// of answers. An incomplete answer fails the test.
    pub(crate) fn ask_until_gone(&self, review: &Value) -> JoinHandle<usize> {
        let (client, body) = (self.client.clone(), review.to_string());
        let url = format!("https://{}/validate", self.webhook);
        let worker = move || {
            let (client, body, url) = (client.clone(), body.clone(), url.clone());
            async move {
                let mut answered = 0;
                loop {
                    let request = client.post(&url).header("content-type", "application/json");
                    match request.body(body.clone()).send().await {
                        Ok(response) => {
                            assert_eq!(response.status(), 200);
                            response.bytes().await.unwrap();
                            answered += 1;
                        }
                        Err(error) if error.is_connect() => return answered,
                        Err(error) => panic!("after {answered}: {error:?}"),
                    }
                }
            }
        };
        let workers = futures_util::future::join_all((0..8).map(move |_| worker()));
        tokio::spawn(async move { workers.await.into_iter().sum() })
    }

    /// Sends the process a signal, such as `TERM`.
    pub(crate) async fn signal(&self, name: &str) {
        let process = self.process.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-s", name, process.as_str()]).status().await;
        assert!(sent.unwrap().success());
    }

    /// Waits for the process to end.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        in_time("the process ends", self.process.wait()).await.unwrap()
    }
}

/// The review in `examples/`.
pub(crate) fn example() -> Value {
    json_file("examples/review.json")
}

/// A JSON file of the repository.
pub(crate) fn json_file(path: &str) -> Value {
    let text = std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    serde_json::from_str(&text).unwrap()
}
