//! The part of a Service between the API server and the replicas: connections go in turn to the
//! replicas that are ready, and to none that refuses them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use crate::harness::{ControlPlane, Guard, patient};
use crate::load::DEADLINE;

/// The interval of the readiness probes.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// The Service. Dropping it ends every connection.
pub(crate) struct Service {
    /// Its address, for a webhook configuration.
    pub(crate) url: String,
    endpoints: Arc<[Endpoint]>,
    _tasks: JoinSet<()>,
}

struct Endpoint {
    address: SocketAddr,
    readiness: String,
    is_ready: AtomicBool,
    /// The number of connections to it, including those that are being made.
    connections: watch::Sender<usize>,
}

impl Service {
    pub(crate) fn before(plane: &'static ControlPlane, replicas: &[&Guard]) -> Self {
        let endpoints: Arc<[Endpoint]> = replicas
            .iter()
            .map(|replica| Endpoint {
                address: address(&replica.url),
                readiness: format!("{}/readyz", replica.admin_url),
                is_ready: AtomicBool::new(true),
                connections: watch::Sender::new(0),
            })
            .collect();
        let listener = plane.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        for number in 0..endpoints.len() {
            let endpoints = Arc::clone(&endpoints);
            let probe = async move {
                let endpoint = &endpoints[number];
                let mut turn = interval(PROBE_EVERY);
                loop {
                    turn.tick().await;
                    let answer = plane.http().get(&endpoint.readiness).send().await;
                    let is_ready = answer.is_ok_and(|answer| answer.status().is_success());
                    endpoint.is_ready.store(is_ready, Ordering::SeqCst);
                }
            };
            tasks.spawn_on(probe, plane.runtime().handle());
        }
        let accepting = accept(listener, Arc::clone(&endpoints));
        tasks.spawn_on(accepting, plane.runtime().handle());
        Self { url, endpoints, _tasks: tasks }
    }

    /// Waits until the API server has closed every connection that went to the replica.
    pub(crate) async fn until_left(&self, replica: usize) -> Result<(), String> {
        let mut connections = self.endpoints[replica].connections.subscribe();
        let none = connections.wait_for(|count| *count == 0);
        match timeout(patient(DEADLINE), none).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(format!("The API server still has connections to replica {replica}.")),
        }
    }
}

async fn accept(listener: TcpListener, endpoints: Arc<[Endpoint]>) {
    let turn = AtomicUsize::new(0);
    let mut connections = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let first = turn.fetch_add(1, Ordering::Relaxed);
        let endpoints = Arc::clone(&endpoints);
        connections.spawn(async move {
            for number in first..first + endpoints.len() {
                let endpoint = &endpoints[number % endpoints.len()];
                if !endpoint.is_ready.load(Ordering::SeqCst) {
                    continue;
                }
                endpoint.connections.send_modify(|count| *count += 1);
                let replica = TcpStream::connect(endpoint.address).await;
                let is_taken = replica.is_ok();
                match replica {
                    Ok(replica) => forward(&mut client, replica).await,
                    Err(_) => endpoint.is_ready.store(false, Ordering::SeqCst),
                }
                endpoint.connections.send_modify(|count| *count -= 1);
                if is_taken {
                    return;
                }
            }
        });
    }
}

/// Forwards bytes until one side ends, then ends the other side; returns once the client has closed
/// its side.
async fn forward(client: &mut TcpStream, mut replica: TcpStream) {
    for stream in [&*client, &replica] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut from_client, mut to_client) = client.split();
    let (mut from_replica, mut to_replica) = replica.split();
    // The connection may end in any way.
    let _ = tokio::select! {
        end = copy(&mut from_client, &mut to_replica) => end,
        end = copy(&mut from_replica, &mut to_client) => end,
    };
    drop(replica);
    let _ = to_client.shutdown().await;
    let _ = copy(&mut from_client, &mut sink()).await;
}

/// The address in a URL without a path.
fn address(url: &str) -> SocketAddr {
    let (_, address) = url.split_once("://").unwrap();
    address.parse().unwrap()
}
