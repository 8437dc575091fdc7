//! A proxy between a guard and the API server. It passes everything on, except the watches of one
//! resource while they are frozen.

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
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::ControlPlane;
use crate::harness::kubectl::kubeconfig_of;

/// The proxy. Dropping it ends every connection.
pub(crate) struct Proxy {
    /// A kubeconfig for clients that use the proxy.
    pub(crate) kubeconfig: PathBuf,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    client: kube::Client,
    /// The paths of watches that were requested.
    watched: Mutex<BTreeSet<String>>,
    /// The path whose watches are held up.
    frozen: watch::Sender<Option<String>>,
}

impl Proxy {
    pub(crate) fn start(plane: &'static ControlPlane) -> Self {
        let listener = plane.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let kubeconfig = kubeconfig_of(listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            client: plane.client(),
            watched: Mutex::default(),
            frozen: watch::Sender::new(None),
        });
        let router = axum::Router::new().fallback(pass).with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        let serving = async { axum::serve(listener, router).await.unwrap() };
        tasks.spawn_on(serving, plane.runtime().handle());
        Self {
            kubeconfig: plane.write_file("proxy.kubeconfig", &kubeconfig),
            shared,
            _tasks: tasks,
        }
    }

    /// The paths of all watches that were requested.
    pub(crate) fn watched(&self) -> BTreeSet<String> {
        self.shared.watched.lock().unwrap().clone()
    }

    /// Holds up the watches of this path only; their events arrive afterwards.
    pub(crate) fn freeze(&self, path: Option<&str>) {
        self.shared.frozen.send_replace(path.map(str::to_owned));
    }
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.contains("watch=true");
    if is_watch {
        shared.watched.lock().unwrap().insert(path.clone());
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(HOST);
    let bytes = body.collect().await.unwrap().to_bytes().to_vec();
    let forwarded = Request::from_parts(parts, kube::client::Body::from(bytes));
    let Ok(answer) = shared.client.send(forwarded).await else {
        return Response::builder().status(502).body(Body::empty()).unwrap();
    };
    if is_watch {
        answer.map(|events| held_up(events, shared.frozen.subscribe(), path))
    } else {
        answer.map(Body::new)
    }
}

/// The body of a watch of this path. While the path is frozen, nothing of it arrives, not even its
/// end.
fn held_up(
    body: kube::client::Body,
    frozen: watch::Receiver<Option<String>>,
    path: String,
) -> Body {
    let frames = stream::unfold((body, frozen, path), async |(mut rest, mut state, watched)| {
        let frame = rest.frame().await;
        state.wait_for(|now| now.as_deref() != Some(&*watched)).await.ok()?;
        Some((Ok::<Frame<_>, Infallible>(frame?.ok()?), (rest, state, watched)))
    });
    Body::new(StreamBody::new(frames))
}
