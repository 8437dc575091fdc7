//! A port: accepting connections, and ending those that are due.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::connections::{Admitted, Asking, Connection, Connections};

/// How long a connection has for saying goodbye where another needs the room.
const DISPLACED: Duration = Duration::from_secs(1);

/// The longest that an API server waits for a review (`timeoutSeconds` of a webhook), and so
/// the longest that a request under way keeps a connection open: its answer may be one that
/// the client does not take, and over HTTP/2 a client can begin further ones until it has
/// heard that the connection is to end.
const UNDER_WAY: Duration = Duration::from_secs(30);

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

/// Accepts connections and hands them to `serve`, until told to stop; then
/// waits until all have ended. Dropping it cuts them.
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
    connections.tell_all_to_leave();
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

/// How long a connection may do what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    /// Without a request, before the first.
    pub(super) first: Duration,
    /// Without a request, afterwards.
    pub(super) idle: Duration,
    /// In all, but for the requests that are under way then.
    pub(super) age: Duration,
    /// After it was told to end, but for the requests that are under way.
    pub(super) goodbye: Duration,
}

/// Serves a connection to its end, with one timer for all that can be late.
///
/// Whatever a client can leave undone (headers, the next request, taking an answer) leaves
/// the connection without anything that begins or ends, and so idle.
pub(super) async fn speak<S, A, F, B>(
    stream: S,
    http: &Builder<TokioExecutor>,
    place: &Admitted,
    lifetime: Lifetime,
    answer: A,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    A: Fn(Asking, Request<Incoming>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connection = place.connection();
    let service = service_fn(|request| {
        // An async block around it would take twice its room.
        answer(connection.begin(Instant::now()), request).map(Ok::<_, Infallible>)
    });
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut told = pin!(connection.told_to_leave());
    let mut timer = pin!(sleep(lifetime.first.min(UNDER_WAY)));
    loop {
        tokio::select! {
            biased;
            // What is wrong with a connection is its client's affair.
            _ = &mut serving => return,
            () = &mut timer => match next_look(connection, lifetime) {
                Some(at) => timer.as_mut().reset(at),
                None => break,
            },
            () = &mut told => break,
        }
    }
    if connection.is_cut() {
        return;
    }
    serving.as_mut().graceful_shutdown();
    if connection.is_displaced() {
        let _ = timeout(DISPLACED, serving).await;
        return;
    }
    let last = Instant::now() + UNDER_WAY;
    loop {
        tokio::select! {
            ended = timeout(lifetime.goodbye, &mut serving) => match ended {
                Err(_) if connection.is_busy()
                    && !connection.is_displaced()
                    && Instant::now() < last.min(connection.last_active() + UNDER_WAY) => {}
                _ => return,
            },
            () = connection.told_to_leave() => {}
        }
        if connection.is_cut() {
            return;
        }
    }
}

/// When the connection is to be looked at again; `None` if it is due to end.
fn next_look(connection: &Connection, lifetime: Lifetime) -> Option<Instant> {
    let patience = match (connection.is_busy(), connection.was_asked()) {
        // What is under way still then is an answer that is not taken.
        (true, _) => UNDER_WAY,
        (false, true) => lifetime.idle,
        (false, false) => lifetime.first,
    };
    let due = (connection.last_active() + patience).min(connection.opened() + lifetime.age);
    let now = Instant::now();
    (due > now).then(|| due.min(now + UNDER_WAY))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex;

    use tokio::io::AsyncWriteExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    const LIFETIME: Lifetime = Lifetime {
        first: LONG,
        idle: LONG,
        age: LONG,
        goodbye: Duration::from_secs(1),
    };

    /// An account is an address's, and readiness knows its own handshake by where it is from.
    #[tokio::test]
    async fn a_caller_by_ipv4_has_an_address_of_ipv4() {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(), 0);
        let listener = listen_at(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, told) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let tell = |_, peer| {
            let _ = sender.lock().unwrap().take()?.send(peer);
            None::<std::future::Ready<()>>
        };
        let (_go_on, stop) = oneshot::channel();
        let connections = Arc::new(Connections::new(1, None));
        let caller = async {
            let caller = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
            (caller.unwrap().local_addr().unwrap(), told.await.unwrap())
        };
        tokio::select! {
            () = accept(listener, connections, stop, tell) => panic!("it ended"),
            (caller, peer) = caller => assert_eq!(caller, peer),
        }
    }

    const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nhost: guard\r\ncontent-length: 0\r\n\r\n";

    /// Over HTTP/2 a client could otherwise keep it open with one request after the other.
    #[tokio::test(start_paused = true)]
    async fn a_connection_told_to_end_waits_only_so_long_for_what_is_under_way() {
        let connections = Arc::new(Connections::new(1, None));
        let place = connections.admit(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let (mut client, stream) = tokio::io::duplex(1024);
        client.write_all(REQUEST).await.unwrap();
        let http = Builder::new(TokioExecutor::new()).http1_only();
        let never = |asking, _| async move {
            let _asking = asking;
            pending::<Response<String>>().await
        };
        let mut speaking = pin!(speak(stream, &http, &place, LIFETIME, never));
        // It has begun to answer.
        tokio::select! {
            biased;
            () = &mut speaking => panic!("it ended at once"),
            () = ready(()) => {}
        }
        assert!(place.connection().is_busy());
        connections.tell_all_to_leave();
        let early = UNDER_WAY - Duration::from_millis(1);
        assert!(timeout(early, &mut speaking).await.is_err(), "too early");
        let late = 2 * LIFETIME.goodbye;
        assert!(timeout(late, &mut speaking).await.is_ok(), "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_answer_nobody_takes_ends() {
        let connections = Arc::new(Connections::new(1, None));
        let place = connections.admit(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let (mut client, stream) = tokio::io::duplex(1024);
        client.write_all(REQUEST).await.unwrap();
        let http = Builder::new(TokioExecutor::new()).http1_only();
        let untaken = Mutex::new(Vec::new());
        let answer = |asking, _| {
            untaken.lock().unwrap().push(asking);
            ready(Response::new(String::new()))
        };
        let mut speaking = pin!(speak(stream, &http, &place, LIFETIME, answer));
        let early = UNDER_WAY - Duration::from_millis(1);
        assert!(timeout(early, &mut speaking).await.is_err(), "too early");
        let late = 2 * LIFETIME.goodbye;
        assert!(timeout(late, &mut speaking).await.is_ok(), "too late");
    }
}
