//! What stands between the API server and the replicas.

use std::net::{self, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{ControlPlane, Guard};

/// What a Service is: each new connection goes to one of the endpoints in turn, whether
/// that answers or not.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    endpoints: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Service {
    pub(crate) fn start(plane: &ControlPlane) -> Self {
        Self::at(Self::address(), plane)
    }

    /// An address that is taken, for [`Self::at`].
    pub(crate) fn address() -> net::TcpListener {
        net::TcpListener::bind("127.0.0.1:0").unwrap()
    }

    /// The same at an address that was known before there was a control plane.
    pub(crate) fn at(listener: net::TcpListener, plane: &ControlPlane) -> Self {
        let endpoints: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let address = listener.local_addr().unwrap();
        let known = Arc::clone(&endpoints);
        listener.set_nonblocking(true).unwrap();
        plane.runtime().spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            for turn in 0.. {
                let (mut caller, _) = listener.accept().await.unwrap();
                let endpoint = {
                    let known = known.lock().unwrap();
                    known[turn % known.len()]
                };
                tokio::spawn(async move {
                    if let Ok(mut replica) = TcpStream::connect(endpoint).await {
                        let _ = copy_bidirectional(&mut caller, &mut replica).await;
                    }
                });
            }
        });
        Self { address, endpoints }
    }

    pub(crate) fn leads_to(&self, guards: &[&Guard]) {
        let address = |guard: &&Guard| {
            let address = guard.url.strip_prefix("https://").unwrap();
            address.parse().unwrap()
        };
        *self.endpoints.lock().unwrap() = guards.iter().map(address).collect();
    }
}
