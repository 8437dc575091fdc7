//! A proxy between a guard and the API server. It passes everything on, except the watches of one
//! resource while they are frozen. If it is slowed down, everything but watches takes its time.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
use tokio::time::{sleep, timeout};

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
    is_slow: AtomicBool,
    /// The number of requests that were slow.
    slow: watch::Sender<usize>,
}

/// The additional time of a slow request.
const SLOW: Duration = Duration::from_millis(200);

impl Proxy {
    pub(crate) fn start(plane: &'static ControlPlane) -> Self {
        let listener = plane.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let kubeconfig = kubeconfig_of(listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            client: plane.client(),
            watched: Mutex::default(),
            frozen: watch::Sender::new(None),
            is_slow: AtomicBool::new(false),
            slow: watch::Sender::new(0),
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

    /// From now on, each request that is no watch takes 200 ms longer.
    pub(crate) fn slow_down(&self) {
        self.shared.is_slow.store(true, Ordering::Relaxed);
    }

    /// Waits until some requests were slow.
    pub(crate) async fn until_slow(&self, limit: Duration) -> Result<(), String> {
        let mut slow = self.shared.slow.subscribe();
        let some = slow.wait_for(|count| *count >= 16);
        match timeout(limit, some).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err("the guard sent no requests".to_owned()),
        }
    }
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.contains("watch=true");
    if is_watch {
        shared.watched.lock().unwrap().insert(path.clone());
    } else if shared.is_slow.load(Ordering::Relaxed) {
        shared.slow.send_modify(|count| *count += 1);
        sleep(SLOW).await;
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
