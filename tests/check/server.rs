//! The source for `--fetch`: a chart repository, a registry and Git repositories, all on loopback.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cases::put;
use super::releases::gitops;
use super::rendering::WEB;
use super::{CLAIM, err};

/// Options that allow fetching from the server.
pub(super) const FETCH: &str = "--fetch --fetch-cache cache --fetch-from 127.0.0.1 --exclude=cache";

/// The answer to a request for a path. A path that ends with a slash includes everything below it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Text(String),
    /// The packed chart.
    Chart(()),
    /// A redirect to this URL, extended by the rest of the path.
    Redirect(String),
    /// The head of an answer of this many bytes, without the body.
    Endless(u64),
    /// No answer until the client gives up.
    Silence(()),
    /// This answer, if the client sends the token `secret`, which it gets from `/token`.
    Guarded(Box<Self>),
}

/// A commit to a repository.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Commit {
    r#in: String,
    files: BTreeMap<String, Value>,
    /// The git command before the commit.
    #[serde(default)]
    before: Option<String>,
    /// The git command after the commit.
    #[serde(default)]
    after: Option<String>,
}

/// The server, which counts its requests. It has the chart `web` 1.2.3 in a repository and in a
/// registry, and the Git repository `base`, in which the kustomization `deploy` includes `common`.
pub(super) struct Server {
    /// The first commit of `base`.
    commit: String,
    shared: Arc<Shared>,
}

struct Shared {
    port: u16,
    chart: Vec<u8>,
    repositories: TempDir,
    asked: AtomicUsize,
    answers: Mutex<BTreeMap<String, Answer>>,
}

/// The default answers.
const ANSWERS: &str = r#"
/index.yaml: {text: "entries: {web: [{name: web, version: 1.2.3, digest: DIGEST, urls: [web-1.2.3.tgz]}]}"}
/web-1.2.3.tgz: {chart: }
/v2/charts/web/manifests/1.2.3: {text: 'MANIFEST'}
/v2/charts/web/manifests/sha256:PINNED: {text: 'MANIFEST'}
"/v2/charts/web/blobs/sha256:DIGEST": {chart: }
/token?service=charts: {text: '{"token": "secret"}'}
/hang/: {silence: }
/moved/: {redirect: "http://ELSEWHERE/"}
"#;

/// The manifest of the chart in the registry.
const MANIFEST: &str = r#"{"layers": [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": "sha256:DIGEST"}]}"#;

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Server {
    /// Starts a server with the chart of [`gitops`], packed by the helm in this folder.
    pub(super) fn start(helm: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = gitops(&[]);
        let shared = Arc::new(Shared {
            port: listener.local_addr().unwrap().port(),
            chart: packed(helm, &folder.path().join("charts/web")),
            repositories: tempfile::tempdir().unwrap(),
            asked: AtomicUsize::default(),
            answers: Mutex::default(),
        });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Arc::clone(&served);
                // The client may have disconnected.
                std::thread::spawn(move || serving.serve(&stream));
            }
        });
        let base = json!({"in": "base", "after": "tag v1", "files": {
            "deploy/kustomization.yaml": {"resources": ["../common"]},
            "common/kustomization.yaml": {"resources": ["web.yaml", "claim.yaml"]},
            "common/web.yaml": WEB,
            "common/claim.yaml": CLAIM,
        }});
        let mut server = Self { commit: String::new(), shared };
        server.commit(&serde_json::from_value(base).unwrap());
        server.commit = server.git("base", "rev-parse HEAD").trim().to_owned();
        server.answers(&BTreeMap::new());
        server
    }

    /// The text with this server's values in place of the placeholders.
    pub(super) fn fill(&self, text: &str) -> String {
        let chart = digest(&self.shared.chart);
        let manifest = digest(MANIFEST.replace("DIGEST", &chart).as_bytes());
        text.replace("ELSEWHERE", &format!("localhost:{}", self.shared.port))
            .replace("HOST", &format!("127.0.0.1:{}", self.shared.port))
            .replace("MANIFEST", MANIFEST)
            .replace("PINNED", &manifest)
            .replace("DIGEST", &chart)
            .replace("COMMIT", &self.commit)
            .replace("FETCH", FETCH)
    }

    /// Sets the answers to the defaults and these others.
    pub(super) fn answers(&self, others: &BTreeMap<String, Answer>) {
        let own: Value = serde_saphyr::from_str(&self.fill(ANSWERS)).unwrap();
        let mut answers: BTreeMap<String, Answer> = serde_json::from_value(own).unwrap();
        answers.extend(others.clone());
        *self.shared.answers.lock().unwrap() = answers;
    }

    /// The number of requests since the last call.
    pub(super) fn asked(&self) -> usize {
        self.shared.asked.swap(0, Ordering::SeqCst)
    }

    pub(super) fn commit(&self, commit: &Commit) {
        let repository = &*commit.r#in;
        let folder = self.shared.repositories.path().join("org").join(repository);
        if !folder.exists() {
            fs::create_dir_all(&folder).unwrap();
            self.git(repository, "init --quiet --initial-branch=main");
        }
        put(&folder, &commit.files);
        self.git(repository, "add --all");
        if let Some(before) = &commit.before {
            self.git(repository, before);
        }
        self.git(repository, "commit --quiet --message=change");
        if let Some(after) = &commit.after {
            self.git(repository, after);
        }
    }

    fn git(&self, repository: &str, arguments: &str) -> String {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(["-c", "core.compression=0"])
            .args(arguments.split(' '))
            .current_dir(self.shared.repositories.path().join("org").join(repository))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "git {arguments}: {}", err(&done));
        String::from_utf8(done.stdout).unwrap()
    }
}

/// The packed chart of a folder.
fn packed(helm: &Path, folder: &Path) -> Vec<u8> {
    let out = tempfile::tempdir().unwrap();
    let done = Command::new(helm.join("helm"))
        .args(["package", "--destination"])
        .arg(out.path())
        .arg(folder)
        .env("HOME", out.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", err(&done));
    fs::read(out.path().join("web-1.2.3.tgz")).unwrap()
}

/// A request.
struct Asked {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Asked {
    fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let headers: HashMap<String, String> = reader
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_lowercase(), value.to_owned()))
            })
            .collect();
        let length = headers.get("content-length").and_then(|text| text.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let mut words = first.split(' ').map(str::to_owned);
        Ok(Self {
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            headers,
            body,
        })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl Shared {
    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let asked = Asked::read(stream)?;
        self.asked.fetch_add(1, Ordering::SeqCst);
        if asked.path.starts_with("/org/") {
            return self.serve_git(stream, &asked);
        }
        let is_of =
            |path: &str| asked.path == path || path.ends_with('/') && asked.path.starts_with(path);
        let answers = self.answers.lock().unwrap().clone();
        let (mut answer, mut below) = (None, "");
        for (path, found) in answers.iter().filter(|(path, _)| is_of(path)) {
            (answer, below) = (Some(found), &asked.path[path.len()..]);
        }
        if let Some(Answer::Guarded(inner)) = answer {
            answer = Some(&**inner);
            if asked.header("authorization") != "Bearer secret" {
                let realm = format!("http://127.0.0.1:{}/token", self.port);
                let wanted =
                    format!("www-authenticate: Bearer realm=\"{realm}\",service=\"charts\"");
                return head(stream, "401 Unauthorized", 0, &wanted);
            }
        }
        let bytes = match answer {
            Some(Answer::Text(text)) => text.as_bytes(),
            Some(Answer::Chart(())) => &self.chart,
            Some(Answer::Redirect(to)) => {
                return head(stream, "302 Found", 0, &format!("location: {to}{below}"));
            }
            Some(Answer::Endless(length)) => {
                head(stream, "200 OK", *length, "x: y")?;
                loop {
                    stream.write_all(&[b'a'; 1 << 16])?;
                }
            }
            Some(Answer::Silence(())) => {
                return io::copy(&mut stream, &mut io::sink()).map(drop);
            }
            Some(Answer::Guarded(_)) | None => return head(stream, "404 Not Found", 0, "x: y"),
        };
        head(stream, "200 OK", bytes.len() as u64, "x: y")?;
        stream.write_all(bytes)
    }

    /// Answers with git's own program for web servers.
    fn serve_git(&self, mut stream: &TcpStream, asked: &Asked) -> io::Result<()> {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let mut program = Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", self.repositories.path())
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("GIT_PROTOCOL", asked.header("git-protocol"))
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", &asked.method)
            .env("CONTENT_TYPE", asked.header("content-type"))
            .env("CONTENT_LENGTH", asked.header("content-length"))
            .env("HTTP_CONTENT_ENCODING", asked.header("content-encoding"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut input) = program.stdin.take() {
            input.write_all(&asked.body)?;
        }
        let answer = program.wait_with_output()?.stdout;
        let status = match answer.strip_prefix(b"Status: ") {
            Some(rest) => String::from_utf8_lossy(&rest[..3]).into_owned(),
            None => "200".to_owned(),
        };
        stream.write_all(format!("HTTP/1.1 {status} x\r\nconnection: close\r\n").as_bytes())?;
        stream.write_all(&answer)
    }
}

/// Writes the head of an answer of this many bytes, with one more line.
fn head(mut stream: &TcpStream, status: &str, length: u64, more: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())
}
