//! Charts in registries (<https://github.com/opencontainers/distribution-spec>).

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::{Client, MAX_ANSWER, MAX_CHART, host, no_url, parsed, referred, wrong_digest};
use super::repository::{best, no_version};
use super::{Download, credentials, digest};
use crate::reason::Reason;

/// The media type of a packed chart.
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The media type of a manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// The place of a chart in a registry.
struct Place<'c> {
    client: &'c Client,
    /// The URL `https://host/v2/path`.
    base: String,
    host: String,
    /// The headers of all requests, with the token once the registry has given one.
    headers: HeaderMap,
}

/// Downloads the newest version of the chart that fits. A digest, in the URL or as the version, is
/// the digest of the manifest.
pub(super) async fn chart(client: &Client, url: &str, version: &str) -> Result<Download, Reason> {
    let wrong = || no_url(url);
    let rest = url.strip_prefix("oci://").ok_or_else(wrong)?;
    let (registry, path) = rest.split_once('/').ok_or_else(wrong)?;
    let (path, pinned) = match path.split_once('@') {
        Some((path, digest)) => (path, Some(digest)),
        None => (path, None),
    };
    let (path, tagged) = match path.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (path, None),
    };
    if !is_registry(registry) || !is_repository(path) {
        return Err(wrong());
    }
    // As in Helm, a registry on this machine has no certificate.
    let is_local = registry.starts_with("127.0.0.1:") || registry.starts_with("localhost:");
    let scheme = if is_local { "http" } else { "https" };
    let base = format!("{scheme}://{registry}/v2/{path}");
    let mut place =
        Place { client, host: host(&base)?, base, headers: credentials::of_registry(registry) };
    let reference = match pinned.or(tagged) {
        Some(reference) => reference.to_owned(),
        None => place.tag(url, version).await?,
    };
    let is_pinned = is_digest(&reference);
    if !is_pinned && !is_tag(&reference) {
        return Err(wrong());
    }
    let (manifest_url, manifest) = place.answer(&format!("manifests/{reference}")).await?;
    if is_pinned {
        compare(&manifest_url, &manifest, &reference)?;
    }
    let layers = from_json::<Manifest>(&manifest_url, &manifest)?.layers;
    let layer = layers
        .iter()
        .find(|layer| layer.media_type == CHART && is_digest(&layer.digest))
        .ok_or_else(|| format!("{url} is not a chart"))?;
    let blob = format!("{}/blobs/{}", place.base, layer.digest);
    let bytes = place.get(&blob, MAX_CHART).await?;
    compare(&blob, &bytes, &layer.digest)?;
    let separator = if is_pinned { '@' } else { ':' };
    Ok(Download { bytes, url: format!("oci://{registry}/{path}{separator}{reference}") })
}

/// Compares the content with the digest that was announced.
fn compare(url: &str, content: &[u8], announced: &str) -> Result<(), Reason> {
    let found = digest(content);
    if found == announced { Ok(()) } else { Err(wrong_digest(url, &found, announced)) }
}

/// Whether the text can only be a host and a port in a URL.
fn is_registry(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c))
}

/// Whether the path is a `<name>` of the distribution specification ("Pulling manifests").
fn is_repository(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    path.split('/').all(|part| {
        part.starts_with(is_plain)
            && part.ends_with(is_plain)
            && part.split(is_plain).all(|separator| {
                matches!(separator, "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
            })
    })
}

/// Whether the text is a tag, a `<reference>` of the distribution specification.
fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || c == '.' || c == '-')
}

/// Whether the text is a SHA-256 digest. Registries may offer others, which charts do not use.
fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn from_json<T: DeserializeOwned>(url: &str, bytes: &[u8]) -> Result<T, Reason> {
    serde_json::from_slice(bytes).map_err(|_| format!("{url} is not JSON of a registry").into())
}

impl Place<'_> {
    /// The content at the URL.
    async fn get(&self, url: &str, limit: u64) -> Result<Vec<u8>, Reason> {
        self.client.get(url, &self.host, &self.headers, limit).await
    }

    /// The tag of the newest version that fits. A tag has `_` where a version has `+`.
    async fn tag(&mut self, url: &str, version: &str) -> Result<String, Reason> {
        let is_exact = semver::Version::parse(version.trim_start_matches('v')).is_ok();
        if is_exact || version.starts_with("sha256:") {
            return Ok(version.replace('+', "_"));
        }
        let (list, tags) = self.answer("tags/list").await?;
        let tags: Tags = from_json(&list, &tags)?;
        let versions: Vec<String> = tags.tags.iter().map(|tag| tag.replace('_', "+")).collect();
        let found = best(versions.iter().map(String::as_str), version)?;
        found.map(|at| tags.tags[at].clone()).ok_or_else(|| no_version(url, "the chart", version))
    }

    /// The URL of the path and its content, requested with a token if the registry requires one.
    async fn answer(&mut self, path: &str) -> Result<(String, Vec<u8>), Reason> {
        let accept = HeaderValue::from_static(MANIFEST);
        self.headers.insert(ACCEPT, accept);
        let url = format!("{}/{path}", self.base);
        let response = self.client.request(&url, &self.host, &self.headers).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge =
                response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            self.authorize(challenge.unwrap_or_default()).await?;
        }
        let bytes = self.get(&url, MAX_ANSWER).await?;
        Ok((url, bytes))
    }

    /// Gets the token that the challenge `Bearer realm="…",service="…",scope="…"` requires.
    async fn authorize(&mut self, challenge: &str) -> Result<(), Reason> {
        let value = |name: &str| {
            let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0)
        };
        let Some(realm) = value("realm").filter(|_| challenge.starts_with("Bearer ")) else {
            return Ok(());
        };
        let mut url = referred(&parsed(&self.base)?, realm)?;
        for name in ["service", "scope"] {
            if let Some(value) = value(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let bytes = self.get(url.as_str(), MAX_ANSWER).await?;
        let header = serde_json::from_slice::<Token>(&bytes)
            .ok()
            .and_then(|answer| answer.token.or(answer.access_token))
            .and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        if let Some(mut header) = header {
            header.set_sensitive(true);
            self.headers.insert(AUTHORIZATION, header);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{is_digest, is_registry, is_repository, is_tag};

    /// The grammar of the distribution specification, with words that would become other paths.
    #[test]
    fn words_of_references() {
        for registry in ["ghcr.io", "localhost:5000", "[::1]:5000", "a-b.example.com"] {
            assert!(is_registry(registry), "{registry}");
        }
        for registry in ["a?b", "a#b", "127.0.0.1:80@b", "a%2eb", "a\\b", "a b"] {
            assert!(!is_registry(registry), "{registry}");
        }
        for path in ["web", "charts/web", "a.b/c_d/e__f/g--h", "0/1"] {
            assert!(is_repository(path), "{path}");
        }
        for path in [
            "", "/web", "web/", "a//b", "..", "a/../b", "Web", "a..b", "a._b", "a?b", "a#b", "a%2e",
        ] {
            assert!(!is_repository(path), "{path}");
        }
        for tag in ["1.2.3", "_a", "v1.0_build.5"] {
            assert!(is_tag(tag), "{tag}");
        }
        let long = "a".repeat(129);
        for tag in ["", "..", "../x", "a/b", "-a", ".a", "a:b", "a?b", &*long] {
            assert!(!is_tag(tag), "{tag}");
        }
        let digest = format!("sha256:{}", "0a".repeat(32));
        assert!(is_digest(&digest));
        for text in [&digest[7..], &digest[..70], &digest.to_uppercase(), "sha256:../x"] {
            assert!(!is_digest(text), "{text}");
        }
    }
}
