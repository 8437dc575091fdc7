//! The addresses that may be contacted: those of the public Internet, and others if `--fetch-from`
//! names their host.
//!
//! A name in a manifest may lead anywhere, so the address of each connection is checked, including
//! those of redirects. A proxy of the user makes its own connections; the address is then checked
//! only if this machine can resolve the name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use wildmatch::WildMatch;

/// The variables that name proxies.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Resolves names for connections.
#[derive(Clone)]
pub(super) struct Resolver {
    allowed: Arc<[WildMatch]>,
    /// The hosts of the user's proxies.
    proxies: Arc<[String]>,
}

/// The reason why a host is not contacted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unasked {
    #[error("it has the address {0}, which is not one of the public Internet")]
    Private(IpAddr),
    #[error("its name cannot be resolved: {0}")]
    Unknown(io::Error),
}

impl Resolver {
    pub(super) fn new(globs: &[String]) -> Self {
        let urls = PROXIES.iter().filter_map(|name| std::env::var(name).ok());
        let host = |url: String| {
            Url::parse(&url)
                .ok()
                .filter(Url::has_host)
                .or_else(|| Url::parse(&format!("http://{url}")).ok())?
                .host_str()
                .map(str::to_owned)
        };
        Self {
            allowed: globs.iter().map(|glob| WildMatch::new(glob)).collect(),
            proxies: urls.filter_map(host).collect(),
        }
    }

    /// Whether `--fetch-from` names the host or URL.
    pub(super) fn is_allowed(&self, name: &str) -> bool {
        self.allowed.iter().any(|glob| glob.matches(name))
    }

    /// Whether `--fetch-from` names anything.
    pub(super) fn is_limited(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Whether the user's proxies make the connections instead of this machine.
    pub(super) fn has_proxy(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// The addresses of the host. All of them must be allowed.
    pub(super) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unasked> {
        let name = host.trim_matches(['[', ']']);
        let found: Vec<IpAddr> = lookup_host((name, 0))
            .await
            .map_err(Unasked::Unknown)?
            .map(|socket| socket.ip())
            .collect();
        match found.iter().find(|address| !is_public(**address) || is_own(**address)) {
            Some(address) if !self.is_allowed(host) => Err(Unasked::Private(*address)),
            _ => Ok(found),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let addresses = if resolver.proxies.iter().any(|proxy| proxy == host) {
                let found = lookup_host((host, 0)).await?;
                found.map(|socket| socket.ip()).collect()
            } else {
                resolver.addresses(host).await?
            };
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}

/// Whether the address is one of the public Internet, according to the registries of IANA.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        // Addresses that embed an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo) are not
        // public, and neither are those for protocols and documentation.
        IpAddr::V6(address) => match address.segments() {
            [0x2002, ..] | [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
            // Global unicast.
            [first, ..] => first & 0xe000 == 0x2000,
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_shared = |octets: [u8; 4]| {
        // Carrier-grade NAT, protocol assignments, benchmarks, and reserved addresses.
        octets[0] == 0
            || octets[0] == 100 && octets[1] & 0xc0 == 64
            || octets[..3] == [192, 0, 0]
            || octets[0] == 198 && octets[1] & 0xfe == 18
            || octets[0] >= 240
            // Azure's own services, which every Azure machine can reach.
            || octets == [168, 63, 129, 16]
    };
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || is_shared(address.octets()))
}

/// Whether the address belongs to this machine, which would then connect to itself. Nothing is
/// sent.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
        .and_then(|socket| {
            socket.connect((address, 9))?;
            socket.local_addr()
        })
        .is_ok_and(|own| own.ip() == address)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Resolver, Unasked, is_public};

    #[test]
    fn only_addresses_of_the_public_internet_are_asked() {
        for (address, public) in [
            ("8.8.8.8", true),
            ("100.63.255.255", true),
            ("100.128.0.1", true),
            ("198.20.0.1", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.127.255.254", false),
            ("192.0.0.192", false),
            ("198.19.0.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
            ("2002:7f00:1::", false),
            ("2001:0:7f00:1::", false),
            ("2001:2::1", false),
            ("2001:1ff:ffff::1", false),
            ("2001:200::1", true),
            ("2001:db8::1", false),
            ("3fff:fff::1", false),
            ("3fff:1000::1", true),
            ("5f00::1", false),
            ("168.63.129.16", false),
            ("168.63.129.17", true),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(is_public(address), public, "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_needs_permission() {
        let refused = Resolver::new(&[]).addresses("localhost").await;
        assert!(matches!(refused, Err(Unasked::Private(address)) if address.is_loopback()));
        let allowed = Resolver::new(&["localhost".to_owned()]);
        assert!(!allowed.addresses("localhost").await.unwrap().is_empty());
        let other = Resolver::new(&["127.0.0.1".to_owned()]);
        assert!(other.addresses("localhost").await.is_err());
    }
}
