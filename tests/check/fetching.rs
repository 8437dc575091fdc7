//! `--fetch`, from a repository of charts and a registry on loopback.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::releases::gitops;
use super::rendering::{check, reported, tools};
use super::{borrowed, err, has, out, report};

/// What a server answers with.
#[derive(Clone)]
pub(super) enum Answer {
    Bytes(Vec<u8>),
    /// For who brings the token `secret`, which is at `/token`.
    Guarded(Vec<u8>),
    Redirect(String),
    /// The head of an answer of so many bytes, and no end.
    Endless(u64),
    Nothing,
}

/// A server on loopback, which counts what it is asked.
pub(super) struct Server {
    pub(super) port: u16,
    asked: Arc<AtomicUsize>,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            answers: Arc::default(),
        };
        let (asked, answers) = (Arc::clone(&server.asked), Arc::clone(&server.answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, answers) = (Arc::clone(&asked), Arc::clone(&answers));
                std::thread::spawn(move || serve(&stream, &asked, &answers));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn answer(&self, path: &str, answer: Answer) {
        let mut answers = self.answers.lock().unwrap();
        answers.insert(path.to_owned(), answer);
    }

    /// Has the chart in a repository.
    pub(super) fn offers(&self, chart: &[u8]) {
        self.answer("/index.yaml", index("web-1.2.3.tgz", &digest(chart)));
        self.answer("/web-1.2.3.tgz", Answer::Bytes(chart.to_vec()));
    }

    /// Has the chart in a registry; answers with the path of its layer.
    pub(super) fn pushes(&self, chart: &[u8], answer: fn(Vec<u8>) -> Answer) -> String {
        let layer = format!("sha256:{}", digest(chart));
        let manifest = format!(
            "{{\"layers\": [{{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \"{layer}\"}}]}}"
        );
        self.answer("/v2/charts/web/manifests/1.2.3", answer(manifest.into()));
        let path = format!("/v2/charts/web/blobs/{layer}");
        self.answer(&path, answer(chart.to_vec()));
        path
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

fn serve(mut stream: &TcpStream, asked: &AtomicUsize, answers: &Mutex<HashMap<String, Answer>>) {
    let mut head = BufReader::new(stream).lines();
    let Some(Ok(first)) = head.next() else { return };
    let mut has_token = false;
    for line in head
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        has_token |= line == "authorization: Bearer secret";
    }
    asked.fetch_add(1, Ordering::SeqCst);
    let path = first.split(' ').nth(1).unwrap_or_default();
    let answer = answers.lock().unwrap().get(path).cloned();
    // Whoever asked may be gone.
    let _ = match answer {
        Some(Answer::Guarded(_)) if !has_token => {
            let port = stream.local_addr().unwrap().port();
            let challenge =
                format!("Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"charts\"");
            let head = format!(
                "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: {challenge}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes())
        }
        None => stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        Some(Answer::Bytes(bytes) | Answer::Guarded(bytes)) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                bytes.len()
            );
            stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(&bytes))
        }
        Some(Answer::Redirect(to)) => {
            let head = format!(
                "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes())
        }
        Some(Answer::Endless(length)) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(&[b'a'; 1 << 16]).is_ok() {}
            Ok(())
        }
        Some(Answer::Nothing) => {
            // It waits until the other end closes.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
            Ok(())
        }
    };
}

/// The chart of the repository, packed by Helm.
pub(super) fn packed(helm: &Path, folder: &Path) -> Vec<u8> {
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

fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// An index that names one packed chart.
fn index(url: &str, digest: &str) -> Answer {
    Answer::Bytes(format!("apiVersion: v1\nentries:\n  web:\n  - {{name: web, version: 1.2.3, digest: {digest}, urls: ['{url}']}}\n").into_bytes())
}

/// A release of the chart from a repository at the URL.
fn release(url: &str, version: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: charts, namespace: prod}}\nspec: {{url: '{url}'}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: shop, namespace: prod}}\nspec:\n  chart: {{spec: {{chart: web, version: '{version}', sourceRef: {{kind: HelmRepository, name: charts}}}}}}\n  values: {{strategy: {{type: RollingUpdate}}}}\n"
    )
}

/// To where fetching is allowed, and what is kept.
pub(super) const FETCH: &str = "--fetch --fetch-cache cache --fetch-from 127.0.0.1";

/// Whether the release is found, and nothing else said.
fn is_found(output: &Output) -> bool {
    matches!(&reported(&report(output))[..], [one] if one.starts_with("prod/shop shop.yaml "))
}

#[test]
fn a_chart_is_fetched_once_and_listed_with_its_digest() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let url = server.url();
    let folder = gitops(&[("shop.yaml", &release(&url, "1.x"))]);
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    server.offers(&chart);
    let run = |more: &str| {
        let arguments = format!("shop.yaml class.yaml --format json {more}");
        check(&folder, tools.path(), arguments.trim_end())
    };

    let offline = run("");
    assert_eq!(
        reported(&report(&offline)),
        [format!("HelmRelease prod/shop: its chart is at {url}")]
    );
    assert_eq!(server.asked(), 0, "nothing is fetched unless it is said");

    let first = run(FETCH);
    assert!(is_found(&first), "{first:?}");
    assert_eq!(server.asked(), 2);
    let line = format!("Fetched {url}/web-1.2.3.tgz, sha256:{}.\n", digest(&chart));
    assert!(err(&first).contains(&line), "{first:?}");

    let second = run(FETCH);
    assert!(is_found(&second), "{second:?}");
    assert_eq!(server.asked(), 0, "the cache has it");

    // What was changed in the cache is not what was fetched.
    let kept = fs::read_dir(folder.path().join("cache"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    fs::write(kept.path(), "something else").unwrap();
    let third = run(FETCH);
    assert!(is_found(&third), "{third:?}");
    assert_eq!(server.asked(), 2);
}

#[test]
fn what_lies_redirects_hangs_or_does_not_end_is_named() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let url = server.url();
    let other = format!("http://localhost:{}/web-1.2.3.tgz", server.port);
    let folder = gitops(&[("shop.yaml", &release(&url, "1.2.3"))]);
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    let right = index("web-1.2.3.tgz", &digest(&chart));
    let lie = index("web-1.2.3.tgz", &"0".repeat(64));
    let elsewhere = index(&other, &digest(&chart));
    let bytes = Answer::Bytes(chart);
    let unnamed = "is on the host localhost, which the manifests do not name; allow it with --fetch-from localhost";
    let to_itself = Answer::Redirect("/web-1.2.3.tgz".to_owned());
    let no_index = Answer::Bytes(b"a: [".to_vec());
    let nothing_in_it = Answer::Bytes(b"entries: {}\n".to_vec());
    for (index, chart, expected) in [
        (&lie, &bytes, "has the digest sha256:"),
        (&elsewhere, &bytes, unnamed),
        (&right, &Answer::Redirect(other), unnamed),
        (&right, &to_itself, "redirects more than 5 times"),
        (&right, &Answer::Endless(2 << 30), "is larger than 32 MiB"),
        (&right, &Answer::Nothing, "did not answer within 2 s"),
        (&no_index, &bytes, "is not an index of charts"),
        (
            &nothing_in_it,
            &bytes,
            "has no version of web that fits 1.2.3",
        ),
    ] {
        server.answer("/index.yaml", index.clone());
        server.answer("/web-1.2.3.tgz", chart.clone());
        let arguments = format!("shop.yaml {FETCH} --render-timeout 2");
        let auto = check(&folder, tools.path(), &arguments);
        has(out(&auto), expected);
        assert_eq!(auto.status.code(), Some(0), "{expected}: {auto:?}");
        let kept = fs::read_dir(folder.path().join("cache")).unwrap();
        assert_eq!(kept.count(), 0, "{expected}");
    }
    let require = "shop.yaml --fetch=require --fetch-cache cache";
    let required = check(&folder, tools.path(), require);
    has(
        err(&required),
        "127.0.0.1 is not asked: it has the address 127.0.0.1, which is not one of the public Internet; allow it with --fetch-from 127.0.0.1",
    );
    assert_eq!(required.status.code(), Some(2));
}

#[test]
fn a_registry_is_asked_with_the_token_that_it_wants() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let text = release(&format!("oci://127.0.0.1:{}/charts", server.port), "1.2.3");
    let folder = gitops(&[("shop.yaml", &text)]);
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    let layer = server.pushes(&chart, Answer::Guarded);
    let token = Answer::Bytes(b"{\"token\": \"secret\"}".to_vec());
    server.answer("/token?service=charts", token);
    let arguments = format!("shop.yaml class.yaml --format json {FETCH}");
    let output = check(&folder, tools.path(), &arguments);
    assert!(is_found(&output), "{output:?}");

    fs::remove_dir_all(folder.path().join("cache")).unwrap();
    server.answer(&layer, Answer::Bytes(b"another".to_vec()));
    let output = check(&folder, tools.path(), &arguments);
    assert!(out(&output).contains("was announced"), "{output:?}");
}

#[test]
fn dependencies_are_fetched_by_their_lock() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let chart = format!(
        "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{{name: web, version: 1.x, repository: '{}'}}]\n",
        server.url()
    );
    let lock = format!(
        "dependencies: [{{name: web, version: 1.2.3, repository: '{}'}}]\n",
        server.url()
    );
    let local = "apiVersion: v2\nname: local\nversion: 1.0.0\ndependencies: [{name: web, version: 1.2.3, repository: 'file://../charts/web'}]\n";
    let values = "web: {strategy: {type: RollingUpdate}}\n";
    let folder = gitops(&[
        ("shop/Chart.yaml", &chart),
        ("shop/Chart.lock", &lock),
        ("shop/values.yaml", values),
        ("local/Chart.yaml", local),
        ("local/values.yaml", values),
    ]);
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    server.offers(&chart);
    let arguments = format!(". --format json {FETCH}");
    let output = check(&folder, tools.path(), &arguments);
    let found = reported(&report(&output));
    assert_eq!(found.len(), 2, "{found:?} {output:?}");
    assert!(
        found.iter().any(|it| it.ends_with(" shop"))
            && found.iter().any(|it| it.ends_with(" local")),
        "{found:?}"
    );
}

#[test]
fn charts_that_a_kustomization_inflates_are_fetched() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let url = server.url();
    let folder = gitops(&[]);
    for (name, chart, more) in [
        ("inline", "web", ""),
        ("over", "web", ", valuesFile: values.yaml"),
        (
            "under",
            "web",
            ", valuesFile: values.yaml, valuesMerge: merge",
        ),
        ("last", "web", ", additionalValuesFiles: [values.yaml]"),
        ("leaves", "web", ", valuesFile: /etc/hostname"),
        ("gone", "gone", ""),
    ] {
        let at = folder.path().join(name);
        fs::create_dir(&at).unwrap();
        let inflates = format!(
            "namespace: prod\nhelmCharts:\n- {{name: {chart}, repo: '{url}', version: ~1.2, releaseName: shop, valuesInline: {{strategy: {{type: RollingUpdate}}}}{more}}}\n"
        );
        fs::write(at.join("kustomization.yaml"), inflates).unwrap();
        fs::write(at.join("values.yaml"), "strategy: {type: Recreate}\n").unwrap();
    }
    let chart = packed(tools.path(), &folder.path().join("charts/web"));
    server.offers(&chart);
    let output = check(&folder, tools.path(), &format!(". --format json {FETCH}"));
    assert_eq!(
        reported(&report(&output)),
        [
            "prod/shop inline/kustomization.yaml inline".to_owned(),
            "prod/shop over/kustomization.yaml over".to_owned(),
            format!("kustomization gone: {url} has no version of gone that fits ~1.2"),
            "kustomization leaves: the values file /etc/hostname of a chart that it inflates is not among its files".to_owned(),
        ],
        "{output:?}"
    );

    let offline = check(&folder, tools.path(), "inline");
    has(
        out(&offline),
        "it inflates the chart \"web\", which is not in its charts folder; `--fetch` gets what is missing",
    );
}

#[test]
fn a_password_in_a_url_is_not_printed() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    let with_password = format!("http://robot:hunter2@{host}");
    let base = format!("resources: ['{with_password}/web.yaml', 'git::{with_password}/a/b.git']\n");
    let folder = gitops(&[
        ("shop.yaml", &release(&with_password, "1.2.3")),
        ("base/kustomization.yaml", &base),
    ]);
    for more in ["", " --fetch --fetch-cache cache", &format!(" {FETCH}")] {
        let output = check(&folder, tools.path(), &format!(". --format json{more}"));
        let said = format!("{}{}", out(&output), err(&output));
        assert!(said.contains("127.0.0.1"), "{said}");
        assert!(
            !said.contains("hunter2") && !said.contains("robot"),
            "{said}"
        );
    }
}

/// Each may take a second, and all of them together ten.
#[test]
fn one_limit_of_time_holds_for_all_hosts() {
    let tools = or_skip!(tools(&["helm", "kustomize"]));
    let server = Server::start();
    let files: Vec<(String, String)> = (0..60)
        .map(|number| {
            let path = format!("/{number}");
            server.answer(&format!("{path}/index.yaml"), Answer::Nothing);
            let url = format!("{}{path}", server.url());
            let text =
                release(&url, "1.2.3").replace("namespace: prod", &format!("namespace: n{number}"));
            (format!("r{number}.yaml"), text)
        })
        .collect();
    let files = borrowed(&files);
    let folder = gitops(&files);
    let arguments = format!(". --format json {FETCH} --render-timeout 1");
    let output = check(&folder, tools.path(), &arguments);
    let reasons = reported(&report(&output));
    let [slow, stopped] = [
        "did not answer within 1 s",
        "all fetching together may take 10 s",
    ]
    .map(|part| reasons.iter().filter(|it| it.contains(part)).count());
    assert_eq!(slow + stopped, 60, "{reasons:#?}");
    assert!(slow >= 4 && stopped >= 4, "{slow} {stopped}");
}
