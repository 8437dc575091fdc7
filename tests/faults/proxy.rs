//! Between a guard and the API server: passes everything on, but for the watches of one
//! resource.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::http::header::HOST;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::kubectl::kubeconfig_of;
use crate::harness::{ControlPlane, patient};
use crate::load::DEADLINE;

/// What becomes of watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They stay open and say nothing; what they had to say comes afterwards.
    Frozen,
    /// They end, and cannot be taken up where they ended.
    Gone,
}

/// Dropping it ends every connection.
pub(crate) struct Proxy {
    /// For those who are to reach the API server through this.
    pub(crate) kubeconfig: PathBuf,
    plane: &'static ControlPlane,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    client: kube::Client,
    /// The paths of watches that were requested.
    watched: Mutex<BTreeSet<String>>,
    /// Which path is struck, and how.
    fault: watch::Sender<Option<(Fault, String)>>,
    /// How many clients have been answered 410 Gone.
    gone: watch::Sender<usize>,
}

impl Proxy {
    pub(crate) fn start(plane: &'static ControlPlane, name: &str) -> Self {
        let listener = plane.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let kubeconfig = kubeconfig_of(listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            client: plane.client(),
            watched: Mutex::default(),
            fault: watch::Sender::new(None),
            gone: watch::Sender::new(0),
        });
        let router = axum::Router::new()
            .fallback(pass)
            .with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        let serving = async { axum::serve(listener, router).await.unwrap() };
        tasks.spawn_on(serving, plane.runtime().handle());
        Self {
            kubeconfig: plane.write_file(&format!("{name}.kubeconfig"), &kubeconfig),
            plane,
            shared,
            _tasks: tasks,
        }
    }

    /// The paths of all watches that were requested.
    pub(crate) fn watched(&self) -> BTreeSet<String> {
        self.shared.watched.lock().unwrap().clone()
    }

    /// Strikes the watches of that path, until the next strike or [`Self::heal`].
    pub(crate) fn strike(&self, fault: Fault, path: &str) {
        self.shared.gone.send_replace(0);
        self.shared
            .fault
            .send_replace(Some((fault, path.to_owned())));
    }

    /// Passes everything on.
    pub(crate) fn heal(&self) {
        self.shared.fault.send_replace(None);
    }

    /// Waits until a client has been answered 410 Gone.
    pub(crate) fn until_gone(&self) -> Result<(), String> {
        let mut gone = self.shared.gone.subscribe();
        let answered = async {
            let answered = gone.wait_for(|count| *count > 0);
            tokio::time::timeout(patient(DEADLINE), answered)
                .await
                .is_ok()
        };
        if self.plane.block_on(answered) {
            Ok(())
        } else {
            Err("Nobody asked for a watch that is gone.".to_owned())
        }
    }
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.contains("watch=true");
    // A list that comes as a watch asks for no place to be taken up at.
    let is_taken_up = is_watch && !query.contains("sendInitialEvents=true");
    if is_watch {
        shared.watched.lock().unwrap().insert(path.clone());
    }
    let strikes = |fault: Fault, path: &str| {
        let now = shared.fault.borrow();
        now.as_ref()
            .is_some_and(|(now, struck)| *now == fault && struck == path)
    };
    if is_taken_up && strikes(Fault::Gone, &path) {
        shared.gone.send_modify(|count| *count += 1);
        let event = json!({ "type": "ERROR", "object": {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": "Expired",
            "code": 410,
            "message": "too old resource version",
        }});
        return Response::new(Body::from(format!("{event}\n")));
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(HOST);
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    let request = Request::from_parts(parts, kube::client::Body::from(body));
    let Ok(answer) = shared.client.send(request).await else {
        let nothing = Response::builder().status(502).body(Body::empty());
        return nothing.unwrap();
    };
    if is_watch {
        answer.map(|body| held_up(body, shared.fault.subscribe(), path))
    } else {
        answer.map(Body::new)
    }
}

/// The body of a watch of that path, as it arrives while the fault is in force; a frozen
/// one does not even end.
fn held_up(
    body: kube::client::Body,
    fault: watch::Receiver<Option<(Fault, String)>>,
    path: String,
) -> Body {
    let frames = stream::unfold((body, fault, path), async |(mut body, mut fault, path)| {
        let is = |now: &Option<(Fault, String)>, fault| *now == Some((fault, path.clone()));
        let frame = {
            let mut cut = fault.clone();
            tokio::select! {
                frame = body.frame() => frame,
                _ = cut.wait_for(|now| is(now, Fault::Gone)) => return None,
            }
        };
        fault.wait_for(|now| !is(now, Fault::Frozen)).await.ok()?;
        let frame = frame?.ok()?;
        Some((Ok::<Frame<_>, Infallible>(frame), (body, fault, path)))
    });
    Body::new(StreamBody::new(frames))
}
