//! Listening, and accepting connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::connections::Connections;

/// Waits before the next accept when the system is out of files or memory,
/// which only time can heal.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// Connections that may wait to be accepted, as far as the system allows
/// (`net.core.somaxconn`). What comes beyond is dropped by Linux, and its client tries
/// again only after a second: 128, the usual number, are there at once when many connect
/// together.
const WAITING: u32 = 4096;

/// Listens at an address. `0.0.0.0` stands for every address, those of IPv6 too where the
/// machine has any, as for servers in Go: pods may have no other.
pub(super) fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() != IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
        return listen_at_just(address);
    }
    let every = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
    listen_at_just(every).or_else(|_| listen_at_just(address))
}

fn listen_at_just(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket_for(address)?;
    if address.is_ipv6() {
        // Otherwise the system decides (`net.ipv6.bindv6only`) whether IPv4 is among them.
        SockRef::from(&socket).set_only_v6(false)?;
    }
    // A port that was in use a moment ago is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// A socket that can be bound to an address.
pub(super) fn socket_for(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

/// Accepts connections and hands them to `serve`, until it is stopped; then waits until all
/// have ended. Dropping it cuts them.
pub(super) async fn accept<S, F>(
    listener: TcpListener,
    connections: Arc<Connections>,
    mut stop: oneshot::Receiver<()>,
    serve: S,
) where
    S: Fn(TcpStream, SocketAddr) -> Option<F>,
    F: Future<Output = ()> + Send + 'static,
{
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Through a socket of IPv6, one of IPv4 comes as `::ffff:a.b.c.d`.
                    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                    if let Some(served) = serve(stream, peer) {
                        open.spawn(served);
                    }
                }
                Err(error) => accept_failed(&error).await,
            },
            Some(_) = open.join_next() => {}
            _ = &mut stop => break,
        }
    }
    drop(listener);
    connections.close_all();
    while open.join_next().await.is_some() {}
}

async fn accept_failed(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        return;
    }
    tracing::error!(%error, "A connection could not be accepted.");
    sleep(EXHAUSTED).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Connections are capped per address, and readiness knows its own handshake by where it
    /// is from.
    #[tokio::test]
    async fn a_caller_by_ipv4_has_an_address_of_ipv4() {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(), 0);
        let listener = listen_at(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, accepted) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let report = |_, peer| {
            let _ = sender.lock().unwrap().take()?.send(peer);
            None::<std::future::Ready<()>>
        };
        let (_go_on, stop) = oneshot::channel();
        let connections = Arc::new(Connections::new(1, 1, None));
        let caller = async {
            let caller = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
            (
                caller.unwrap().local_addr().unwrap(),
                accepted.await.unwrap(),
            )
        };
        tokio::select! {
            () = accept(listener, connections, stop, report) => panic!("it ended"),
            (caller, peer) = caller => assert_eq!(caller, peer),
        }
    }
}
