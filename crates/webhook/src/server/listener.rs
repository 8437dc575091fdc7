//! Listens at addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket};

/// The number of connections that may wait to be accepted, as far as the system allows
/// (`net.core.somaxconn`). Linux drops further ones, and their clients try again only after a
/// second. The usual number, 128, is reached at once when many connect together.
const WAITING: u32 = 4096;

/// Listens at an address. `0.0.0.0` stands for every address, including those of IPv6 if the
/// machine has any, as for servers in Go: pods may have no other.
pub(super) fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() != IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
        return listen_at_just(address);
    }
    let every = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
    listen_at_just(every).or_else(|_| listen_at_just(address))
}

fn listen_at_just(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    if address.is_ipv6() {
        // Otherwise the system decides (`net.ipv6.bindv6only`) whether IPv4 is included.
        SockRef::from(&socket).set_only_v6(false)?;
    }
    // This frees a port that was in use a moment ago.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}
