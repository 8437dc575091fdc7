//! An API server on loopback that lists, watches and returns the objects of a test.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, Bytes};
use axum::http::{Response, StatusCode, Uri};
use futures_util::stream::{self, StreamExt};
use kube::Config;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

pub(super) const CLAIMS: &str = "/api/v1/persistentvolumeclaims";
pub(super) const NODES: &str = "/api/v1/nodes";

/// An API server with a runtime of its own: ending the runtime ends every connection, as if the
/// machine went down.
pub(super) struct FakeApiServer {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

struct State {
    inner: Mutex<Inner>,
    /// Responses to requests for single objects wait while their path contains this text.
    held: watch::Sender<Option<&'static str>>,
    /// The number of requests for single objects that have arrived.
    gets: watch::Sender<usize>,
}

#[derive(Default)]
struct Inner {
    /// The objects by list path, then by object path.
    objects: HashMap<String, BTreeMap<String, Value>>,
    /// Existing objects that no list or watch has reported.
    unheard: HashMap<String, Value>,
    watches: HashMap<String, Vec<mpsc::UnboundedSender<String>>>,
    forbidden: HashSet<String>,
    unknown: HashSet<String>,
    no_streaming: bool,
    no_bookmarks: bool,
    gone: HashSet<String>,
    lists: HashMap<String, usize>,
    selectors: HashMap<String, String>,
    version: u64,
    /// Lists whose watches receive nothing for now.
    silent: HashSet<String>,
    /// Every event, by list path and version.
    events: Vec<(String, u64, String)>,
}

impl FakeApiServer {
    pub(super) fn new() -> Self {
        let state = State {
            inner: Mutex::default(),
            held: watch::Sender::new(None),
            gets: watch::Sender::new(0),
        };
        let mut server =
            Self { address: ([127, 0, 0, 1], 0).into(), state: Arc::new(state), runtime: None };
        server.start();
        server
    }

    pub(super) fn config(&self) -> Config {
        let url = format!("http://{}/", self.address);
        let mut config = Config::new(url.parse().unwrap());
        config.default_retry = false;
        config
    }

    /// Listens on the same port as before.
    pub(super) fn start(&mut self) {
        let listener = std::net::TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let state = Arc::clone(&self.state);
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let service = router(state);
            axum::serve(listener, service).await.unwrap();
        });
        self.runtime = Some(runtime);
    }

    /// Ends every connection and refuses new ones.
    pub(super) fn stop(&mut self) {
        self.lock().watches.clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    pub(super) fn put(&self, list: &str, object: Value) {
        self.change(list, "ADDED", object);
    }

    pub(super) fn delete(&self, list: &str, object: Value) {
        self.change(list, "DELETED", object);
    }

    fn change(&self, list: &str, event: &str, mut object: Value) {
        let mut inner = self.lock();
        inner.version += 1;
        object["metadata"]["resourceVersion"] = json!(inner.version.to_string());
        let objects = inner.objects.entry(list.to_owned()).or_default();
        if event == "DELETED" {
            objects.remove(&path_of(list, &object));
        } else {
            objects.insert(path_of(list, &object), object.clone());
        }
        let line = event_line(event, &object);
        let version = inner.version;
        inner.events.push((list.to_owned(), version, line.clone()));
        if inner.silent.contains(list) {
            return;
        }
        for watch in inner.watches.get(list).into_iter().flatten() {
            let _ = watch.send(line.clone());
        }
    }

    /// Sends nothing more to the watches of the list; lists and requests for single objects still
    /// work.
    pub(super) fn silence(&self, list: &str) {
        self.lock().silent.insert(list.to_owned());
    }

    /// Sends the watches of the list all events since that version.
    pub(super) fn speak(&self, list: &str, since: u64) {
        let mut inner = self.lock();
        inner.silent.remove(list);
        let unheard = |(of, version, _): &&(String, u64, String)| of == list && *version > since;
        for (_, _, line) in inner.events.iter().filter(unheard) {
            for watch in inner.watches.get(list).into_iter().flatten() {
                let _ = watch.send(line.clone());
            }
        }
    }

    /// The version of the last change.
    pub(super) fn version(&self) -> u64 {
        self.lock().version
    }

    /// Adds an object without an event for the watches.
    pub(super) fn put_unheard(&self, list: &str, object: Value) {
        let path = path_of(list, &object);
        self.lock().unheard.insert(path, object);
    }

    /// Removes an object, and makes the watches of the list start anew.
    pub(super) fn forget_and_expire(&self, list: &str, object: &Value) {
        let mut inner = self.lock();
        let path = path_of(list, object);
        inner.objects.entry(list.to_owned()).or_default().remove(&path);
        inner.gone.insert(list.to_owned());
        inner.watches.remove(list);
    }

    pub(super) fn forbid(&self, list: &str) {
        self.lock().forbidden.insert(list.to_owned());
    }

    pub(super) fn do_not_serve(&self, list: &str) {
        self.lock().unknown.insert(list.to_owned());
    }

    pub(super) fn refuse_streaming(&self) {
        self.lock().no_streaming = true;
    }

    /// Ends streamed lists without the bookmark that says they are complete.
    pub(super) fn forget_bookmarks(&self) {
        self.lock().no_bookmarks = true;
    }

    pub(super) fn lists(&self, list: &str) -> usize {
        self.lock().lists.get(list).copied().unwrap_or(0)
    }

    pub(super) fn selector(&self, list: &str) -> Option<String> {
        self.lock().selectors.get(list).cloned()
    }

    /// Holds the responses to requests for single objects whose path contains this text.
    pub(super) fn hold(&self, held: Option<&'static str>) {
        self.state.held.send_replace(held);
    }

    pub(super) fn gets(&self) -> watch::Receiver<usize> {
        self.state.gets.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.inner.lock().unwrap()
    }
}

impl Drop for FakeApiServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn path_of(list: &str, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    match object["metadata"]["namespace"].as_str() {
        None => format!("{list}/{name}"),
        Some(namespace) => {
            let (version, plural) = list.rsplit_once('/').unwrap();
            format!("{version}/namespaces/{namespace}/{plural}/{name}")
        }
    }
}

fn router(state: Arc<State>) -> axum::Router {
    axum::Router::new().fallback(move |uri: Uri| {
        let state = Arc::clone(&state);
        async move { answer(&state, &uri).await }
    })
}

async fn answer(state: &State, uri: &Uri) -> Response<Body> {
    let path = uri.path().to_owned();
    if path == "/version" {
        let version = json!({"major": "1", "minor": "38+", "gitVersion": "v1.38.0-beta.0", "gitCommit": "",
            "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
        return json_response(StatusCode::OK, &version);
    }
    let query: HashMap<&str, &str> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .collect();
    if query.is_empty() {
        state.gets.send_modify(|gets| *gets += 1);
        let is_free = |held: &Option<&str>| held.is_none_or(|part| !path.contains(part));
        state.held.subscribe().wait_for(is_free).await.unwrap();
    }
    let mut inner = state.inner.lock().unwrap();
    if inner.forbidden.contains(&path) {
        return failure(StatusCode::FORBIDDEN, "this is forbidden to you");
    }
    if query.is_empty() {
        return get(&inner, &path);
    }
    if inner.unknown.contains(&path) {
        let mut response = Response::new(Body::from("404 page not found\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    if let Some(selector) = query.get("fieldSelector") {
        inner.selectors.insert(path.clone(), (*selector).to_owned());
    }
    let initial = query.contains_key("sendInitialEvents");
    if initial && inner.no_streaming {
        return failure(StatusCode::UNPROCESSABLE_ENTITY, "sendInitialEvents is forbidden");
    }
    if query.get("watch") == Some(&"true") {
        if initial {
            *inner.lists.entry(path.clone()).or_default() += 1;
        }
        let from = if initial { None } else { query.get("resourceVersion") };
        if initial && inner.no_bookmarks {
            return Response::new(Body::empty());
        }
        return watch_list(&mut inner, &path, from.map(|from| from.parse().unwrap()));
    }
    *inner.lists.entry(path.clone()).or_default() += 1;
    list(&inner, &path, &query)
}

fn get(inner: &Inner, path: &str) -> Response<Body> {
    let heard = inner.objects.values().find_map(|objects| objects.get(path));
    match heard.or_else(|| inner.unheard.get(path)) {
        Some(object) => json_response(StatusCode::OK, object),
        None => failure(StatusCode::NOT_FOUND, "not found"),
    }
}

fn list(inner: &Inner, path: &str, query: &HashMap<&str, &str>) -> Response<Body> {
    let from: usize = query.get("continue").map_or(0, |from| from.parse().unwrap());
    let limit: usize = query["limit"].parse().unwrap();
    // The list of one namespace is a part of the list of all namespaces.
    let parts: Vec<&str> = path.split('/').collect();
    let (of_all, namespace) = match parts[..] {
        [.., "namespaces", namespace, plural] => {
            let version = path.split("/namespaces/").next().unwrap();
            (format!("{version}/{plural}"), Some(namespace))
        }
        _ => (path.to_owned(), None),
    };
    let is_in = |object: &&Value| {
        namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
    };
    let objects: Vec<&Value> =
        inner.objects.get(&of_all).into_iter().flat_map(BTreeMap::values).filter(is_in).collect();
    let page: Vec<_> = objects.iter().skip(from).take(limit).collect();
    let next = from + page.len();
    let continue_at = if next < objects.len() { next.to_string() } else { String::new() };
    let mut metadata =
        json!({"resourceVersion": inner.version.to_string(), "continue": continue_at});
    if next < objects.len() && !query.contains_key("fieldSelector") {
        metadata["remainingItemCount"] = json!(objects.len() - next);
    }
    json_response(
        StatusCode::OK,
        &json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": page}),
    )
}

/// Streams the existing objects and then events or, with `from`, the events since that version.
fn watch_list(inner: &mut Inner, path: &str, from: Option<u64>) -> Response<Body> {
    let mut lines = String::new();
    if let Some(from) = from {
        if inner.gone.remove(path) {
            lines = event_line("ERROR", &status(410, "too old resource version"));
        } else {
            let since =
                |(list, version, _): &&(String, u64, String)| list == path && *version > from;
            lines.extend(inner.events.iter().filter(since).map(|(_, _, line)| line.as_str()));
        }
    } else {
        for object in inner.objects.get(path).into_iter().flat_map(BTreeMap::values) {
            lines += &event_line("ADDED", object);
        }
        let metadata = json!({"resourceVersion": inner.version.to_string(),
            "annotations": {"k8s.io/initial-events-end": "true"}});
        lines += &event_line(
            "BOOKMARK",
            &json!({"kind": "X", "apiVersion": "v1", "metadata": metadata}),
        );
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    inner.watches.entry(path.to_owned()).or_default().push(sender);
    let events =
        stream::unfold(receiver, async |mut queue| queue.recv().await.map(|line| (line, queue)));
    let body =
        stream::iter([lines]).chain(events).map(|line| Ok::<_, Infallible>(Bytes::from(line)));
    Response::new(Body::from_stream(body))
}

fn event_line(event: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": event, "object": object}))
}

fn status(code: u16, message: &str) -> Value {
    let reason = if code == 404 { "NotFound" } else { "" };
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message})
}

fn failure(code: StatusCode, message: &str) -> Response<Body> {
    json_response(code, &status(code.as_u16(), message))
}

fn json_response(code: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = code;
    response
}
