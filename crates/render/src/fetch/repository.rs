//! Charts in repositories (<https://helm.sh/docs/topics/chart_repository/>).

use semver::{Version, VersionReq};
use serde::Deserialize;
use std::collections::HashMap;

use super::client::{Client, MAX_CHART, MAX_INDEX, host, parsed, referred, wrong_digest};
use super::{Download, credentials, digest};
use crate::reason::Reason;

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    entries: HashMap<String, Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    version: String,
    #[serde(default)]
    urls: Vec<String>,
    digest: Option<String>,
}

/// Downloads the newest version of the chart that fits, according to the repository's index.
pub(super) async fn chart(
    client: &Client,
    url: &str,
    name: &str,
    version: &str,
) -> Result<Download, Reason> {
    let named = host(url)?;
    let mut headers = credentials::of_repository(url);
    let index_url = format!("{}/index.yaml", url.trim_end_matches('/'));
    let index = client.get(&index_url, &named, &headers, MAX_INDEX).await?;
    let wrong = || format!("{index_url} is not an index of charts");
    let index = std::str::from_utf8(&index).map_err(|_| wrong())?;
    let options = serde_saphyr::options! { budget: None };
    let index: Index = serde_saphyr::from_str_with_options(index, options).map_err(|_| wrong())?;
    let entries = index.entries.get(name).map_or(&[][..], Vec::as_slice);
    let versions = entries.iter().map(|entry| entry.version.as_str());
    let missing = || no_version(url, name, version);
    let at = best(versions, version)?.ok_or_else(missing)?;
    let entry = &entries[at];
    let base = parsed(&index_url)?;
    let file = referred(&base, entry.urls.first().ok_or_else(missing)?)?;
    if file.origin() != base.origin() {
        headers.clear();
    }
    let file = file.as_str();
    let bytes = client.get(file, &named, &headers, MAX_CHART).await?;
    let found = digest(&bytes);
    if let Some(expected) = &entry.digest
        && found.trim_start_matches("sha256:") != expected.trim_start_matches("sha256:")
    {
        return Err(wrong_digest(file, &found, expected));
    }
    Ok(Download { bytes, url: file.to_owned() })
}

/// The reason if no version of the chart fits.
pub(super) fn no_version(url: &str, name: &str, version: &str) -> Reason {
    format!("{url} has no version of {name} that fits {version}").into()
}

/// The index of the newest version that fits the constraint, as Helm interprets it.
pub(super) fn best<'v>(
    versions: impl Iterator<Item = &'v str>,
    constraint: &str,
) -> Result<Option<usize>, Reason> {
    let constraint = constraint.trim();
    let read = |text: &str| Version::parse(text.strip_prefix('v').unwrap_or(text)).ok();
    let exact = read(constraint);
    let ranges = match exact {
        Some(_) => Vec::new(),
        None => ranges(constraint)?,
    };
    let fits = |version: &Version| match &exact {
        Some(exact) => version == exact,
        None => ranges.iter().any(|range| range.matches(version)),
    };
    let newest = versions
        .enumerate()
        .filter_map(|(at, text)| Some((read(text)?, at)))
        .filter(|(version, _)| fits(version))
        .max();
    Ok(newest.map(|(_, at)| at))
}

/// The ranges of the constraint. A version must match one of them.
fn ranges(constraint: &str) -> Result<Vec<VersionReq>, Reason> {
    let refused = || format!("{constraint} is a version in a notation that is not read here");
    let one = |text: &str| {
        let text = match text.split_once(" - ") {
            Some((from, to)) => format!(">={from} <={to}"),
            None => text.to_owned(),
        };
        let text = text.trim();
        let is_partial =
            text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains([',', ' ']);
        let text = match text {
            "" | "*" | "x" => "*".to_owned(),
            // Without an operator, missing parts of a version match anything.
            text if is_partial && text.split('.').count() < 3 => format!("{text}.*"),
            text => text.to_owned(),
        };
        // `VersionReq` requires commas: `>= 1.0 < 2.0` is `>= 1.0, < 2.0` there.
        let mut listed = String::new();
        for word in text.replace(',', " ").split_whitespace() {
            let is_start = word.starts_with(['>', '<', '=', '~', '^']);
            if is_start && !listed.is_empty() {
                listed.push(',');
            }
            listed += word;
        }
        VersionReq::parse(&listed).map_err(|_| refused().into())
    };
    constraint.split("||").map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn constraints_are_read_as_helm_reads_them() {
        let versions = ["1.0.0", "1.2.3", "v1.2.10", "1.10.0", "2.0.0", "3.0.0-rc.1", "word"];
        for (constraint, expected) in [
            ("1.2.3", Some("1.2.3")),
            ("v1.2.3", Some("1.2.3")),
            ("1.2.x", Some("v1.2.10")),
            ("1.2", Some("v1.2.10")),
            ("1", Some("1.10.0")),
            ("^1.2.0", Some("1.10.0")),
            ("~1.2.0", Some("v1.2.10")),
            (">=1.0.0 <2.0.0", Some("1.10.0")),
            (">= 1.0.0, < 1.2.4", Some("1.2.3")),
            ("1.0.0 || 2.0.0", Some("2.0.0")),
            ("1.0 - 1.2.3", Some("1.2.3")),
            ("1.0.0 - 1.2", Some("v1.2.10")),
            ("*", Some("2.0.0")),
            ("4.0.0", None),
        ] {
            let found = best(versions.into_iter(), constraint).unwrap();
            assert_eq!(found.map(|at| versions[at]), expected, "{constraint}");
        }
        for constraint in ["1.0 - ", "!=1.2.3", "latest"] {
            assert!(best(versions.into_iter(), constraint).is_err(), "{constraint}");
        }
    }
}
