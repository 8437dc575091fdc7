//! Listening.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};

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
