//! Requests content from hosts, within limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Resolver, Unasked};
use crate::reason::Reason;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Response, Url, redirect};

/// The most bytes of a packed chart. The largest known chart has a tenth of that.
pub(super) const MAX_CHART: u64 = 32 << 20;

/// The most bytes of an index of a repository.
pub(super) const MAX_INDEX: u64 = 64 << 20;

/// The most bytes of a manifest or a token.
pub(super) const MAX_ANSWER: u64 = 4 << 20;

/// The time limit for connecting to a host.
const CONNECT: Duration = Duration::from_secs(10);

const MAX_REDIRECTS: usize = 5;

/// A client for the hosts that are allowed.
pub(super) struct Client {
    http: reqwest::Client,
    resolver: Resolver,
    /// The time limit for a complete answer.
    pub(super) limit: Duration,
}

impl Client {
    pub(super) fn new(globs: &[String], limit: Duration) -> Result<Self, reqwest::Error> {
        let resolver = Resolver::new(globs);
        let http = reqwest::Client::builder()
            .dns_resolver(Arc::new(resolver.clone()))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT.min(limit))
            .timeout(limit)
            .user_agent(concat!("multi-attach-guard/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, resolver, limit })
    }

    /// The content at the URL, which is on the host `named` by a manifest, or on an allowed one.
    /// Redirects are followed only to such hosts; `headers` are sent only to the first host.
    pub(super) async fn get(
        &self,
        url: &str,
        named: &str,
        headers: &HeaderMap,
        limit: u64,
    ) -> Result<Vec<u8>, Reason> {
        let mut response = self.request(url, named, headers).await?;
        let status = response.status();
        let final_url = response.url().to_string();
        if !status.is_success() {
            return Err(format!("{final_url} answers {status}").into());
        }
        if response.content_length() > Some(limit) {
            return Err(large(&final_url, limit));
        }
        let failed = |error| self.failed(&final_url, error);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if (bytes.len() + chunk.len()) as u64 > limit {
                return Err(large(&final_url, limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// The answer after all redirects, with any status.
    pub(super) async fn request(
        &self,
        url: &str,
        named: &str,
        headers: &HeaderMap,
    ) -> Result<Response, Reason> {
        let mut at = parsed(url)?;
        let first = at.origin();
        for _ in 0..=MAX_REDIRECTS {
            self.allow(&at, named)?;
            self.addresses(&at).await?;
            let mut request = self.http.get(at.clone());
            if at.origin() == first {
                request = request.headers(headers.clone());
            }
            let response = request.send().await.map_err(|error| self.failed(at.as_str(), error))?;
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let Some(location) = location.filter(|_| response.status().is_redirection()) else {
                return Ok(response);
            };
            at = referred(&at, location)?;
        }
        Err(format!("{url} redirects more than {MAX_REDIRECTS} times").into())
    }

    fn failed(&self, url: &str, error: reqwest::Error) -> Reason {
        if error.is_timeout() {
            return slow(url, self.limit);
        }
        format!("{url} cannot be read: {}", error.without_url()).into()
    }

    /// Checks that a Git repository may be contacted. Its URL comes from a manifest.
    pub(super) fn allow_repository(&self, url: &Url) -> Result<(), Reason> {
        let host = url.host_str().unwrap_or_default();
        match url.scheme() {
            "http" | "https" => self.allow(url, host),
            "ssh" if self.resolver.is_allowed(host) => Ok(()),
            "ssh" => Err(format!(
                "fetching from {host} uses your SSH keys; allow it with --fetch-from {host}"
            )
            .into()),
            "file" if self.resolver.is_allowed(url.as_str()) => Ok(()),
            "file" => {
                Err(format!("{url} is on this machine; allow it with --fetch-from {url}").into())
            }
            _ => Err(no_url(url.as_str())),
        }
    }

    fn allow(&self, url: &Url, named: &str) -> Result<(), Reason> {
        let host = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(no_url(url.as_str()));
        }
        if self.resolver.is_allowed(host) {
            return Ok(());
        }
        if host != named {
            return Err(format!(
                "{url} is on the host {host}, which the manifests do not name; allow it with --fetch-from {host}"
            )
            .into());
        }
        if self.resolver.is_limited() {
            return Err(format!("{host} is not among the hosts of --fetch-from").into());
        }
        Ok(())
    }

    /// The addresses of the URL's host, which may be contacted. The result is empty if the user has
    /// a proxy and this machine cannot resolve the name.
    pub(super) async fn addresses(&self, url: &Url) -> Result<Vec<IpAddr>, Reason> {
        let host = url.host_str().unwrap_or_default();
        match self.resolver.addresses(host).await {
            Ok(found) => Ok(found),
            Err(reason @ Unasked::Private(_)) => {
                Err(format!("{host} is not asked: {reason}; allow it with --fetch-from {host}")
                    .into())
            }
            Err(_) if self.resolver.has_proxy() => Ok(Vec::new()),
            Err(reason) => Err(format!("{host} is not asked: {reason}").into()),
        }
    }
}

/// The reason for a text that is not a URL, or is one with a scheme that is not supported.
pub(super) fn no_url(text: &str) -> Reason {
    format!("{text} is not a URL that anything is fetched from").into()
}

/// The reason for content with more than `limit` bytes.
pub(super) fn large(url: &str, limit: u64) -> Reason {
    format!("{url} is larger than {} MiB", limit >> 20).into()
}

/// The reason for a host that does not answer in time.
pub(super) fn slow(url: &str, limit: Duration) -> Reason {
    format!("{url} did not answer within {} s", limit.as_secs()).into()
}

/// The reason for content that is not the announced one.
pub(super) fn wrong_digest(url: &str, found: &str, expected: &str) -> Reason {
    format!("{url} has the digest {found}, and {expected} was announced").into()
}

/// The host of the URL.
pub(super) fn host(url: &str) -> Result<String, Reason> {
    parsed(url)?.host_str().map(str::to_owned).ok_or_else(|| no_url(url))
}

/// The URL `to`, relative to the URL `from`. It must not change from https to http.
pub(super) fn referred(from: &Url, to: &str) -> Result<Url, Reason> {
    let url = parsed(from.join(to).map_err(|_| no_url(to))?.as_str())?;
    if (from.scheme(), url.scheme()) == ("https", "http") {
        return Err(format!("{url} is without TLS, and a host with TLS refers to it").into());
    }
    Ok(url)
}

/// Parses the URL. Its host must be a single shell word, because messages print it after
/// `--fetch-from`.
pub(super) fn parsed(url: &str) -> Result<Url, Reason> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let is_word = |host: &str| !host.starts_with('-') && host.chars().all(is_plain);
    Url::parse(url).ok().filter(|url| url.host_str().is_none_or(is_word)).ok_or_else(|| no_url(url))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Client, Resolver, parsed, referred};

    #[test]
    fn a_host_is_a_word_of_a_command() {
        for (url, is_read) in [
            ("https://charts.example.com/$(id)", true),
            ("https://[2606:4700::1111]:443/a", true),
            ("ssh://git@a_b.example/c", true),
            ("file:///srv/a", true),
            ("https://*/a", false),
            ("https://$(id)/a", false),
            ("https://a;id/b", false),
            ("https://`id`/a", false),
            ("ssh://a'b/c", false),
            ("ssh://$(touch%20a)/b", false),
            ("ssh://-oProxyCommand=sh/a", false),
            ("ssh://a*/b", false),
        ] {
            assert_eq!(parsed(url).is_ok(), is_read, "{url}");
        }
    }

    #[test]
    fn what_a_host_with_tls_refers_to_has_tls() {
        for (from, to, expected) in [
            ("https://a.example/b", "/c", Some("https://a.example/c")),
            ("https://a.example/b", "//d.example", Some("https://d.example/")),
            ("http://a.example/b", "http://d.example/", Some("http://d.example/")),
            ("http://a.example/b", "https://d.example/", Some("https://d.example/")),
            ("https://a.example/b", "http://a.example/b", None),
            ("https://a.example/b", "HTTP:\\\\d.example", None),
        ] {
            let url = referred(&parsed(from).unwrap(), to).ok();
            assert_eq!(url.as_ref().map(reqwest::Url::as_str), expected, "{to}");
        }
    }

    #[test]
    fn only_hosts_that_are_named_or_allowed_are_asked() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let table: [(&[&str], &str, Option<&str>); 8] = [
            (&[], "https://charts.example.com/a", None),
            (
                &[],
                "https://other.example.com/a",
                Some("allow it with --fetch-from other.example.com"),
            ),
            (&[], "ftp://charts.example.com/a", Some("is not a URL")),
            (&["*.example.com"], "https://other.example.com/a", None),
            (&["example.org"], "https://charts.example.com/a", Some("is not among the hosts")),
            (&["example.org"], "https://example.net/a", Some("allow it with")),
            (&["127.0.0.1"], "http://127.0.0.1:80/a", None),
            (&[], "file:///etc/passwd", Some("is not a URL")),
        ];
        for (globs, url, expected) in table {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            let client = Client {
                http: reqwest::Client::new(),
                resolver: Resolver::new(&globs),
                limit: Duration::from_secs(1),
            };
            let allowed = client.allow(&parsed(url).unwrap(), "charts.example.com");
            let message = allowed.err().map(|reason| reason.text);
            match expected {
                None => assert_eq!(message, None, "{url}"),
                Some(part) => assert!(message.unwrap().contains(part), "{url}"),
            }
        }
    }
}
