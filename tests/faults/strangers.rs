//! Somebody else on the network takes connections and does nothing with them.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::Played;
use crate::harness::Guard;
use crate::load::{Came, DEADLINE};
use crate::world::{self, World};

/// An address of this machine that is not the one of the other clients.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Connections that are opened and held, by far more than a guard takes.
const CONNECTIONS: usize = 10_000;

/// So many come at once, and the next when these have been accepted.
const TOGETHER: usize = 100;

/// Clients that stall at each stage; together most of what a guard takes.
const STALLED: usize = 120;

/// Requests before anybody disturbs, and after.
const SOME: usize = 100;

/// What clients have sent when they stall, after the handshake.
const STAGES: [&[u8]; 2] = [
    b"POST /validate HTTP/1.1\r\nhost: guard\r\n",
    b"POST /validate HTTP/1.1\r\nhost: guard\r\ncontent-type: application/json\r\n\
      content-length: 100\r\nconnection: close\r\n\r\n{",
];

/// Whoever opens them keeps each that the guard does not close.
pub(crate) fn they_hold_connections(world: &'static World) -> Result<Played, String> {
    let guard = world.plane.guard("crowded", &world::sure());
    let load = world.load_of_newcomers(&guard);
    load.until_more(SOME)?;
    let newcomer = world.newcomer();
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS / TOGETHER {
        for _ in 0..TOGETHER {
            held.push(world.plane.block_on(connection(&guard))?);
        }
        held.retain(is_open);
        // It comes after them all, so none of them still waits to be accepted.
        let asked = world.ask_the_guard(&newcomer, &guard.url, "data", 0);
        match world.plane.block_on(asked) {
            Came::Right => {}
            Came::Failed(said) | Came::Wrong(said) => return Err(said),
        }
    }
    let ready = world
        .plane
        .http()
        .get(format!("{}/readyz", guard.admin_url));
    let answer = world.plane.block_on(ready.send());
    let status = answer.map_err(|error| error.to_string())?.status();
    if !status.is_success() {
        return Err(format!("The guard is not ready: {status}."));
    }
    load.until_more(SOME)?;
    Ok(Played::answered(
        load.end(),
        format!("{} of {CONNECTIONS} were left at the end", held.len()),
    ))
}

/// They stall before the handshake, in the headers and in the body, until they are let go.
pub(crate) fn they_stall(world: &'static World) -> Result<Played, String> {
    let guard = Arc::new(world.plane.guard("stalled", &world::sure()));
    let authority = world.plane.pki.authority_pem();
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = TlsConnector::from(Arc::new(config));

    let load = world.load_of_newcomers(&guard);
    load.until_more(SOME)?;
    let let_go = world.plane.block_on(async {
        let mut clients = JoinSet::new();
        for _ in 0..STALLED {
            let to = Arc::clone(&guard);
            clients.spawn(async move { until_let_go(connection(&to).await?).await });
            for sent in STAGES {
                let (to, tls) = (Arc::clone(&guard), tls.clone());
                clients.spawn(async move {
                    let name = ServerName::try_from("127.0.0.1").unwrap();
                    let stream = tls.connect(name, connection(&to).await?).await;
                    let mut stream = stream.map_err(|error| error.to_string())?;
                    let written = stream.write_all(sent).await;
                    written.map_err(|error| error.to_string())?;
                    until_let_go(stream).await
                });
            }
        }
        clients.join_all().await
    });
    let let_go = let_go.into_iter().collect::<Result<Vec<()>, String>>()?;
    load.until_more(SOME)?;
    Ok(Played::answered(
        load.end(),
        format!("{} clients, all of them let go", let_go.len()),
    ))
}

async fn connection(guard: &Guard) -> Result<TcpStream, String> {
    let to: SocketAddr = guard.url["https://".len()..].parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(STRANGER, 0)).unwrap();
    let connected = socket.connect(to).await;
    connected.map_err(|error| format!("A stranger cannot connect: {error}."))
}

/// Whether the guard has neither said anything nor closed it.
fn is_open(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Waits until the guard ends the connection, however it does.
async fn until_let_go(mut stream: impl AsyncReadExt + Unpin) -> Result<(), String> {
    let mut said = Vec::new();
    match timeout(DEADLINE, stream.read_to_end(&mut said)).await {
        Ok(_) => Ok(()),
        Err(_) => Err("A client that stalls is not let go.".to_owned()),
    }
}
