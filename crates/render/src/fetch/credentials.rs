//! Credentials, from Helm's own configuration only.

use std::path::PathBuf;

use ::files::read_regular;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::delivery::value_of;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;

use super::client::MAX_ANSWER;

/// The headers for a repository of charts that Helm knows under this URL.
pub(super) fn of_repository(url: &str) -> HeaderMap {
    let content = content("HELM_REPOSITORY_CONFIG", "repositories.yaml");
    let repositories = content.get("repositories").and_then(Value::as_array);
    let found = repositories.into_iter().flatten().find(|repository| {
        let known = repository.get("url").and_then(Value::as_str).unwrap_or_default();
        known.trim_end_matches('/') == url.trim_end_matches('/')
    });
    let text = |key: &str| found?.get(key)?.as_str().filter(|text| !text.is_empty());
    match (text("username"), text("password")) {
        (Some(name), Some(password)) => header(&STANDARD.encode(format!("{name}:{password}"))),
        _ => HeaderMap::new(),
    }
}

/// The headers for a registry that Helm is logged in to. Credential helpers are not started.
pub(super) fn of_registry(host: &str) -> HeaderMap {
    let content = content("HELM_REGISTRY_CONFIG", "registry/config.json");
    content["auths"][host]["auth"].as_str().map_or_else(HeaderMap::new, header)
}

fn header(basic: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {basic}")) {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}

/// The content of a file of Helm's configuration; null if there is none.
fn content(variable: &str, file: &str) -> Value {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = path("HELM_CONFIG_HOME")
        .or_else(|| Some(path("XDG_CONFIG_HOME")?.join("helm")))
        .or_else(|| Some(path("HOME")?.join(".config").join("helm")));
    path(variable)
        .or_else(|| Some(home?.join(file)))
        .and_then(|found| read_regular(&found, MAX_ANSWER).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| value_of(&text))
        .unwrap_or_default()
}
