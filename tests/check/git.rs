//! `--fetch` of Git repositories, from git's own server on loopback.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::releases::gitops;
use super::rendering::{self, WEB, check, tools};
use super::{CLAIM, err, has, out, report};

/// Git repositories behind HTTP, by git's own program for web servers.
struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            folder: tempfile::tempdir().unwrap(),
        };
        let (asked, root) = (Arc::clone(&server.asked), server.folder.path().to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, root) = (Arc::clone(&asked), root.clone());
                std::thread::spawn(move || serve(&stream, &asked, &root));
            }
        });
        server
    }

    fn url(&self, repository: &str) -> String {
        format!("http://127.0.0.1:{}/org/{repository}", self.port)
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    /// Commits the files to a repository and returns the commit.
    fn commit(&self, repository: &str, files: &[(&str, &str)]) -> String {
        let folder = self.folder.path().join("org").join(repository);
        if !folder.exists() {
            fs::create_dir_all(&folder).unwrap();
            git(&folder, "init --quiet --initial-branch=main");
        }
        for (name, text) in files {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        git(&folder, "add --all");
        git(&folder, "commit --quiet --allow-empty --message=change");
        git(&folder, "rev-parse HEAD").trim().to_owned()
    }

    fn git(&self, repository: &str, arguments: &str) {
        git(&self.folder.path().join("org").join(repository), arguments);
    }
}

fn git(folder: &Path, arguments: &str) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments.split(' '))
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments}: {}", err(&done));
    String::from_utf8(done.stdout).unwrap()
}

/// Answers one request: what lies below `/hang` and `/moved` not as git would.
fn serve(mut stream: &TcpStream, asked: &AtomicUsize, root: &Path) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
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
    asked.fetch_add(1, Ordering::SeqCst);
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap_or_default());
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    if target.starts_with("/hang") {
        // It waits until the other end closes.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        return;
    }
    if let Some(rest) = target.strip_prefix("/moved") {
        let port = stream.local_addr().unwrap().port();
        let head = format!(
            "HTTP/1.1 302 Found\r\nlocation: http://localhost:{port}{rest}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        return;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut program = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", header("content-length"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(&body).unwrap();
    let answer = program.wait_with_output().unwrap().stdout;
    let status = match answer.strip_prefix(b"Status: ") {
        Some(rest) => String::from_utf8_lossy(&rest[..3]).into_owned(),
        None => "200".to_owned(),
    };
    // Whoever asked may be gone.
    let _ = stream
        .write_all(format!("HTTP/1.1 {status} x\r\nconnection: close\r\n").as_bytes())
        .and_then(|()| stream.write_all(&answer));
}

/// The programs that render, and git.
fn programs() -> Option<TempDir> {
    let tools = tools(&["helm", "kustomize"])?;
    link_git(&tools);
    Some(tools)
}

fn link_git(tools: &TempDir) {
    let path = std::env::var_os("PATH").unwrap();
    let mut programs = std::env::split_paths(&path).map(|it| it.join("git"));
    let git: PathBuf = programs.find(|it| it.exists()).unwrap();
    std::os::unix::fs::symlink(git, tools.path().join("git")).unwrap();
}

fn run(folder: &TempDir, tools: &TempDir, more: &str) -> Output {
    let cache = folder.path().with_extension("cache");
    let cache = cache.display();
    let fetch = format!("--fetch --fetch-cache {cache} --fetch-from 127.0.0.1 --exclude=cache");
    check(
        folder,
        tools.path(),
        format!(". --format json {fetch} {more}").trim_end(),
    )
}

/// What was found, and what was not opened.
fn reported(output: &Output) -> Vec<String> {
    rendering::reported(&report(output))
}

/// A kustomization that names this.
fn names(name: &str) -> String {
    format!("namespace: prod\nresources: ['{name}']\n")
}

/// Files of a repository with a kustomization in `deploy`, of what lies beside it.
fn base() -> Vec<(&'static str, &'static str)> {
    vec![
        ("deploy/kustomization.yaml", "resources: [../common]\n"),
        (
            "common/kustomization.yaml",
            "resources: [web.yaml, claim.yaml]\n",
        ),
        ("common/web.yaml", WEB),
        ("common/claim.yaml", CLAIM),
    ]
}

const FOUND: &str = "prod/web web/kustomization.yaml web";

#[test]
fn a_base_at_a_commit_is_fetched_once() {
    let Some(tools) = programs() else { return };
    let server = Server::start();
    let first = server.commit("base", &base());
    server.git("base", "tag v1");
    let url = server.url("base");
    for (reference, note) in [
        (first.as_str(), ""),
        ("v1", ""),
        ("main", " (the branch main, which may move)"),
    ] {
        let named = names(&format!("{url}//deploy?ref={reference}"));
        let folder = gitops(&[("web/kustomization.yaml", &named)]);
        let offline = check(&folder, tools.path(), ". --format json");
        let expected = format!("kustomization web: it names {url}//deploy?ref={reference}");
        assert_eq!(reported(&offline), [expected]);
        assert_eq!(server.asked(), 0, "nothing is fetched unless it is said");

        let once = run(&folder, &tools, "");
        assert_eq!(reported(&once), [FOUND], "{once:?}");
        let line = format!("Fetched {url} at the commit {first}{note}, sha256:");
        assert!(err(&once).contains(&line), "{once:?}");
        assert!(server.asked() > 0);

        let again = run(&folder, &tools, "");
        assert_eq!(reported(&again), [FOUND], "{again:?}");
        assert_eq!(server.asked(), 0, "the cache has it");
    }

    // What moves is seen once the cache is gone.
    let second = server.commit("base", &[("common/kustomization.yaml", "resources: []\n")]);
    server.git("base", "tag --force v1");
    let named = names(&format!("{url}//deploy?ref=v1"));
    let folder = gitops(&[("web/kustomization.yaml", &named)]);
    let moved = run(&folder, &tools, "");
    assert_eq!(reported(&moved), [""; 0], "{moved:?}");
    assert!(err(&moved).contains(&second), "{moved:?}");
}

#[test]
fn bases_name_others_and_circles_end() {
    let Some(tools) = programs() else { return };
    let server = Server::start();
    let url = |name: &str| server.url(name);
    server.commit("base", &base());
    let inner = names(&format!("{}//deploy?ref=main", url("base")));
    server.commit("middle", &[("kustomization.yaml", &inner)]);
    let circle = names(&format!("{}?ref=main", url("circle")));
    server.commit("circle", &[("kustomization.yaml", &circle)]);
    let file = format!("http://127.0.0.1:{}/hang/install.yaml", server.port);
    let folder = gitops(&[
        (
            "web/kustomization.yaml",
            &names(&format!("{}?ref=main", url("middle"))),
        ),
        ("circle/kustomization.yaml", &circle),
        ("file/kustomization.yaml", &names(&file)),
    ]);
    let output = run(&folder, &tools, "--render-timeout 3");
    let reported = reported(&output);
    assert_eq!(reported[0], FOUND, "{output:?}");
    assert!(reported[1].contains("cycle detected"), "{reported:?}");
    has(&reported[2], "did not answer within 3 s");
    assert_eq!(reported.len(), 3, "{reported:?}");
}

#[test]
fn nothing_of_a_repository_runs_and_nothing_leads_out_of_it() {
    let Some(tools) = programs() else { return };
    let server = Server::start();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.yaml");
    fs::write(&secret, WEB).unwrap();
    server.commit("module", &base());
    let mut files = base();
    let filter = "*.yaml filter=run\n";
    files.push((".gitattributes", filter));
    files.push(("hooks/post-checkout", "#!/bin/sh\nexit 1\n"));
    let modules = format!(
        "[submodule \"m\"]\n\tpath = m\n\turl = {}\n\tupdate = !touch {}/ran\n",
        server.url("module"),
        outside.path().display()
    );
    files.push((".gitmodules", &modules));
    server.commit("base", &files);
    let top = server.folder.path().join("org/base");
    fs::create_dir(top.join("linked")).unwrap();
    std::os::unix::fs::symlink(&secret, top.join("linked/web.yaml")).unwrap();
    let entry = server.commit("module", &[]);
    server.git(
        "base",
        &format!("update-index --add --cacheinfo 160000,{entry},m"),
    );
    server.commit(
        "base",
        &[("linked/kustomization.yaml", "resources: [web.yaml]\n")],
    );
    let named = |folder: &str| names(&format!("{}//{folder}?ref=main", server.url("base")));
    let folder = gitops(&[
        ("web/kustomization.yaml", &named("deploy")),
        ("linked/kustomization.yaml", &named("linked")),
        ("module/kustomization.yaml", &named("m/deploy")),
        ("above/kustomization.yaml", &named("../../etc")),
    ]);
    let output = run(&folder, &tools, "");
    let reported = reported(&output);
    assert_eq!(reported[0], FOUND, "{output:?}");
    has(&reported[1], "has no folder ../../etc");
    has(&reported[2], "a link that leads out of it");
    has(&reported[3], "has no folder m/deploy");
    assert_eq!(reported.len(), 4, "{reported:?}");
    assert!(!outside.path().join("ran").exists());
}

#[test]
fn what_hangs_redirects_or_is_too_large_is_named() {
    let Some(tools) = programs() else { return };
    let server = Server::start();
    server.commit("base", &base());
    let port = server.port;
    let at = |path: &str| format!("http://127.0.0.1:{port}/{path}?ref=main");
    // What cannot be compressed, a little more than a pack may have.
    let mut noise = vec![0; 65 << 20];
    let mut state = 1_u64;
    for chunk in noise.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    server.commit("large", &base());
    server.git("large", "config core.compression 0");
    fs::write(server.folder.path().join("org/large/noise"), noise).unwrap();
    server.commit("large", &[]);
    for (name, expected) in [
        (at("hang/base"), "did not answer within 5 s"),
        (at("moved/org/base"), "cannot be fetched: git says: "),
        (at("org/large//deploy"), "is larger than 64 MiB"),
        (at("org/missing"), "cannot be fetched: git says: "),
        (
            format!("http://127.0.0.1:{port}/org/base?ref=--upload-pack=x"),
            "has no commit, tag or branch named --upload-pack=x",
        ),
        (
            format!("http://127.0.0.1:{port}/org/base?ref=v9"),
            "couldn't find remote ref v9",
        ),
        (
            format!("http://localhost:{port}/org/base?ref=main"),
            "localhost is not among the hosts of --fetch-from",
        ),
        (
            "git@example.org:org/base.git//deploy?ref=main".to_owned(),
            "fetching from example.org uses your SSH keys; allow it with --fetch-from example.org",
        ),
        (
            "file:///srv/git/base//deploy".to_owned(),
            "file:///srv/git/base is on this machine; allow it with --fetch-from file:///srv/git/base",
        ),
        (
            "git://127.0.0.1/org/base//deploy".to_owned(),
            "is not a URL that anything is fetched from",
        ),
    ] {
        let folder = gitops(&[("web/kustomization.yaml", &names(&name))]);
        let limit = if name.contains("hang") { "5" } else { "60" };
        let output = run(&folder, &tools, &format!("--render-timeout {limit}"));
        let reported = reported(&output);
        assert!(
            reported.len() == 1 && reported[0].contains(expected),
            "{name}: {reported:?}"
        );
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let kept = fs::read_dir(folder.path().with_extension("cache"));
        assert_eq!(kept.map_or(0, Iterator::count), 0, "{name}");
    }
}

#[test]
fn charts_and_manifests_of_other_repositories_are_fetched() {
    let Some(tools) = programs() else { return };
    let server = Server::start();
    let charts = gitops(&[]);
    let read = |name: &str| fs::read_to_string(charts.path().join("charts/web").join(name));
    let chart: Vec<(&str, String)> = [
        ("web/Chart.yaml", "Chart.yaml"),
        ("web/values.yaml", "values.yaml"),
        ("web/templates/web.yaml", "templates/web.yaml"),
    ]
    .map(|(to, from)| (to, read(from).unwrap()))
    .to_vec();
    let mut files: Vec<(&str, &str)> = chart.iter().map(|(a, b)| (*a, b.as_str())).collect();
    files.push(("prod.yaml", "strategy: {type: RollingUpdate}\n"));
    files.push(("plain/web.yaml", WEB));
    files.push(("plain/claim.yaml", CLAIM));
    server.commit("charts", &files);
    server.git("charts", "tag v1");
    let url = server.url("charts");
    let release = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: charts, namespace: prod}}\nspec: {{url: '{url}', ref: {{tag: v1}}}}\n---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: shop, namespace: prod}}\nspec:\n  chart: {{spec: {{chart: web, valuesFiles: [prod.yaml], sourceRef: {{kind: GitRepository, name: charts}}}}}}\n"
    );
    let application = |name: &str, sources: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  destination: {{namespace: {name}}}\n  sources:\n{sources}"
        )
    };
    let values = format!(
        "  - {{repoURL: '{url}', targetRevision: v1, path: web, helm: {{valueFiles: [$values/prod.yaml]}}}}\n  - {{repoURL: '{url}', targetRevision: v1, ref: values}}\n"
    );
    let plain = format!("  - {{repoURL: '{url}', targetRevision: HEAD, path: plain}}\n");
    server.git("charts", "tag v1.4.0");
    server.commit("charts", &[("prod.yaml", "strategy: {type: Recreate}\n")]);
    server.git("charts", "tag v2.0.0");
    let range = release
        .replace("tag: v1", "semver: '>=1.0.0 <2.0.0'")
        .replace("name: shop", "name: range")
        .replace("name: charts", "name: ranged");
    let none = range.replace("<2.0.0", "<1.1.0").replace("range", "none");
    let folder = gitops(&[
        ("none.yaml", &none),
        ("range.yaml", &range),
        ("release.yaml", &release),
        ("values.yaml", &application("values", &values)),
        ("plain.yaml", &application("plain", &plain)),
    ]);
    let shown = format!("127.0.0.1:{}/org/charts", server.port);
    let output = run(&folder, &tools, "");
    assert_eq!(
        reported(&output),
        [
            format!("plain/web plain.yaml {shown}/plain"),
            format!("prod/range range.yaml {shown}@tags:>=1.0.0 <2.0.0/web"),
            format!("prod/shop release.yaml {shown}@v1/web"),
            format!("values/values values.yaml {shown}@v1/web"),
            format!(
                "HelmRelease prod/none: {url} has no commit, tag or branch named tags:>=1.0.0 <1.1.0"
            ),
        ],
        "{output:?}"
    );
    let offline = check(&folder, tools.path(), ".");
    has(out(&offline), "`--fetch` gets what is missing");
}
