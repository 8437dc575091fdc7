//! Requests content from hosts, within limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Resolver, Unasked};
use crate::program::run::Failure;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Response, StatusCode, Url, redirect};

/// The most bytes of a packed chart. The largest known chart has a tenth of that.
pub(super) const MAX_CHART: u64 = 32 << 20;

/// The most bytes of an index of a repository.
pub(super) const MAX_INDEX: u64 = 64 << 20;

/// The most bytes of a manifest or a token.
pub(super) const MAX_ANSWER: u64 = 4 << 20;

/// The time limit for connecting to a host.
const CONNECT: Duration = Duration::from_secs(10);

const MAX_REDIRECTS: usize = 5;

/// The reason why nothing was fetched. Each is the end of a sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{0} is not a URL that anything is fetched from")]
    Url(String),
    #[error(
        "{url} is on the host {host}, which the manifests do not name; allow it with --fetch-from {host}"
    )]
    OtherHost { url: String, host: String },
    #[error("{host} is not among the hosts of --fetch-from")]
    NotAllowed { host: String },
    #[error("{host} is not asked: {reason}; allow it with --fetch-from {host}")]
    Private { host: String, reason: Unasked },
    #[error("{host} is not asked: {reason}")]
    Unknown { host: String, reason: Unasked },
    #[error("{url} answers {status}")]
    Status { url: String, status: StatusCode },
    #[error("{url} is without TLS, and a host with TLS refers to it")]
    Plain { url: String },
    #[error("{url} redirects more than {MAX_REDIRECTS} times")]
    Redirects { url: String },
    #[error("{url} is larger than {} MiB", limit >> 20)]
    Large { url: String, limit: u64 },
    #[error("{url} did not answer within {} s", limit.as_secs())]
    Slow { url: String, limit: Duration },
    #[error("{url} cannot be read: {source}")]
    Request {
        url: String,
        source: Box<reqwest::Error>,
    },
    #[error("{url} has the digest {found}, and {expected} was announced")]
    Digest {
        url: String,
        found: String,
        expected: String,
    },
    #[error("{url} {problem}")]
    Content { url: String, problem: String },
    #[error("{url} has no version of {name} that fits {version}")]
    Version {
        url: String,
        name: String,
        version: String,
    },
    #[error("{0} is a version in a notation that is not read here")]
    Constraint(String),
    #[error("fetching from {host} uses your SSH keys; allow it with --fetch-from {host}")]
    Keys { host: String },
    #[error("{url} is on this machine; allow it with --fetch-from {url}")]
    Local { url: String },
    #[error("{url} has no commit, tag or branch named {name}")]
    Reference { url: String, name: String },
    #[error("{url} cannot be fetched: {failure}")]
    Git { url: String, failure: Failure },
}

/// A client for the hosts that are allowed.
pub(super) struct Client {
    http: reqwest::Client,
    resolver: Resolver,
    /// The time limit for a complete answer.
    limit: Duration,
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
        Ok(Self {
            http,
            resolver,
            limit,
        })
    }

    /// The content at the URL, which is on the host `named` by a manifest, or on an allowed one.
    /// Redirects are followed only to such hosts; `headers` are sent only to the first host.
    pub(super) async fn get(
        &self,
        url: &str,
        named: &str,
        headers: &HeaderMap,
        limit: u64,
    ) -> Result<Vec<u8>, FetchError> {
        let mut response = self.request(url, named, headers).await?;
        let status = response.status();
        let url = response.url().to_string();
        if !status.is_success() {
            return Err(FetchError::Status { url, status });
        }
        let large = || FetchError::Large {
            url: url.clone(),
            limit,
        };
        if response
            .content_length()
            .is_some_and(|length| length > limit)
        {
            return Err(large());
        }
        let mut bytes = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| self.failed(&url, error))? else {
                return Ok(bytes);
            };
            if (bytes.len() + chunk.len()) as u64 > limit {
                return Err(large());
            }
            bytes.extend_from_slice(&chunk);
        }
    }

    /// The answer after all redirects, with any status.
    pub(super) async fn request(
        &self,
        url: &str,
        named: &str,
        headers: &HeaderMap,
    ) -> Result<Response, FetchError> {
        let mut at = parsed(url)?;
        let first = at.origin();
        for _ in 0..=MAX_REDIRECTS {
            self.allow(&at, named)?;
            self.addresses(&at).await?;
            let mut request = self.http.get(at.clone());
            if at.origin() == first {
                request = request.headers(headers.clone());
            }
            let response = request.send().await;
            let response = response.map_err(|error| self.failed(at.as_str(), error))?;
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|it| it.to_str().ok());
            let Some(location) = location.filter(|_| response.status().is_redirection()) else {
                return Ok(response);
            };
            at = referred(&at, location)?;
        }
        let url = url.to_owned();
        Err(FetchError::Redirects { url })
    }

    fn failed(&self, url: &str, error: reqwest::Error) -> FetchError {
        let url = url.to_owned();
        if error.is_timeout() {
            let limit = self.limit;
            return FetchError::Slow { url, limit };
        }
        FetchError::Request {
            url,
            source: Box::new(error.without_url()),
        }
    }

    /// The time limit for a complete answer.
    pub(super) const fn limit(&self) -> Duration {
        self.limit
    }

    /// Checks that a Git repository may be contacted. Its URL comes from a manifest.
    pub(super) fn allow_repository(&self, url: &Url) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_allowed = |name: &str| self.resolver.is_allowed(name);
        match url.scheme() {
            "http" | "https" => self.allow(url, &host),
            "ssh" if is_allowed(&host) => Ok(()),
            "ssh" => Err(FetchError::Keys { host }),
            "file" if is_allowed(url.as_str()) => Ok(()),
            "file" => Err(FetchError::Local {
                url: url.to_string(),
            }),
            _ => Err(FetchError::Url(url.to_string())),
        }
    }

    fn allow(&self, url: &Url, named: &str) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Url(url.to_string()));
        }
        if self.resolver.is_allowed(host) {
            return Ok(());
        }
        let name = || host.to_owned();
        if self.resolver.is_limited() && host == named {
            return Err(FetchError::NotAllowed { host: name() });
        }
        if host != named {
            let url = url.to_string();
            return Err(FetchError::OtherHost { url, host: name() });
        }
        Ok(())
    }

    /// The addresses of the URL's host, which may be contacted. The result is empty if the user has
    /// a proxy and this machine cannot resolve the name.
    pub(super) async fn addresses(&self, url: &Url) -> Result<Vec<IpAddr>, FetchError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        match self.resolver.addresses(&host).await {
            Ok(found) => Ok(found),
            Err(reason @ Unasked::Private(_)) => Err(FetchError::Private { host, reason }),
            Err(_) if self.resolver.has_proxy() => Ok(Vec::new()),
            Err(reason) => Err(FetchError::Unknown { host, reason }),
        }
    }
}

/// The host of the URL.
pub(super) fn host(url: &str) -> Result<String, FetchError> {
    let parsed = parsed(url)?;
    let host = parsed.host_str();
    host.map(str::to_owned)
        .ok_or_else(|| FetchError::Url(url.to_owned()))
}

/// The URL `to`, relative to the URL `from`. It must not change from https to http.
pub(super) fn referred(from: &Url, to: &str) -> Result<Url, FetchError> {
    let url = from.join(to).map_err(|_| FetchError::Url(to.to_owned()))?;
    let url = parsed(url.as_str())?;
    if (from.scheme(), url.scheme()) == ("https", "http") {
        return Err(FetchError::Plain { url: url.into() });
    }
    Ok(url)
}

/// Parses the URL. Its host must be a single shell word, because messages print it after
/// `--fetch-from`.
pub(super) fn parsed(url: &str) -> Result<Url, FetchError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let is_word = |host: &str| !host.starts_with('-') && host.chars().all(is_plain);
    Url::parse(url)
        .ok()
        .filter(|url| url.host_str().is_none_or(is_word))
        .ok_or_else(|| FetchError::Url(url.to_owned()))
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
            (
                "https://a.example/b",
                "//d.example",
                Some("https://d.example/"),
            ),
            (
                "http://a.example/b",
                "http://d.example/",
                Some("http://d.example/"),
            ),
            (
                "http://a.example/b",
                "https://d.example/",
                Some("https://d.example/"),
            ),
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
            (
                &["example.org"],
                "https://charts.example.com/a",
                Some("is not among the hosts"),
            ),
            (
                &["example.org"],
                "https://example.net/a",
                Some("allow it with"),
            ),
            (&["127.0.0.1"], "http://127.0.0.1:80/a", None),
            (&[], "file:///etc/passwd", Some("is not a URL")),
        ];
        for (globs, url, expected) in table {
            let globs: Vec<String> = globs.iter().map(|&it| it.to_owned()).collect();
            let client = Client {
                http: reqwest::Client::new(),
                resolver: Resolver::new(&globs),
                limit: Duration::from_secs(1),
            };
            let allowed = client.allow(&parsed(url).unwrap(), "charts.example.com");
            let message = allowed.err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(message, None, "{url}"),
                Some(part) => assert!(message.unwrap().contains(part), "{url}"),
            }
        }
    }
}
