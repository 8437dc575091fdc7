//! The resources that kustomize fetches: files, and folders of Git repositories, by the URLs that
//! it knows (<https://github.com/kubernetes-sigs/kustomize/blob/master/examples/remoteBuild.md>).

use super::Remote;

/// Hosts whose repositories have an owner and a name.
const HOSTS: [&str; 2] = ["github.com", "gitlab.com"];

/// The remote resource with that name, and the folder in it; `None` if the name cannot be
/// interpreted.
pub(super) fn read(name: &str) -> Option<(Remote, String)> {
    let name = name.strip_prefix("git::").unwrap_or(name);
    let (address, query) = name.split_once('?').unwrap_or((name, ""));
    let reference = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| matches!(*key, "ref" | "version"))
        .map(|(_, value)| value.to_owned());
    if reference.is_none() && is_file(address) {
        let url = name.to_owned();
        return Some((Remote::File { url }, String::new()));
    }
    let (scheme, rest) = split(address)?;
    let (repository, path) = match scheme {
        "file" if !rest.contains("//") => (rest.as_str(), ""),
        _ => divided(&rest)?,
    };
    let url = format!("{scheme}://{repository}");
    let path = path.trim_matches('/').to_owned();
    Some((Remote::Git { url, reference }, path))
}

/// Whether the URL has the name of a manifest.
fn is_file(address: &str) -> bool {
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    is_web && [".yaml", ".yml", ".json"].iter().any(|end| address.ends_with(end))
}

/// The scheme, and the host with everything after it.
pub(super) fn split(address: &str) -> Option<(&str, String)> {
    if let Some((scheme, rest)) = address.split_once("://") {
        return Some((scheme, rest.to_owned()));
    }
    if let Some((user, rest)) = address.split_once('@') {
        // The form is `git@host:path`, or with a slash instead of the colon.
        let is_user = !user.contains('/');
        return is_user.then(|| ("ssh", format!("{user}@{}", rest.replacen(':', "/", 1))));
    }
    let (host, path) = address.split_once(['/', ':'])?;
    HOSTS.contains(&host).then(|| ("https", format!("{host}/{path}")))
}

/// The repository and the path in it.
fn divided(rest: &str) -> Option<(&str, &str)> {
    if let Some((repository, path)) = rest.split_once("//") {
        return Some((repository, path));
    }
    if let Some(at) = rest.find(".git/") {
        return Some(rest.split_at(at + ".git".len()));
    }
    if rest.ends_with(".git") {
        return Some((rest, ""));
    }
    // The repository is the host, the owner and the name.
    let end = rest.match_indices('/').nth(2).map_or(rest.len(), |(at, _)| at);
    rest.contains('/').then(|| rest.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::super::Remote;
    use super::read;

    #[test]
    fn urls_are_read_as_kustomize_reads_them() {
        for (name, expected) in [
            (
                "https://github.com/org/app//deploy/base?ref=v1.2",
                Some("https://github.com/org/app v1.2 deploy/base"),
            ),
            (
                "github.com/org/app/deploy?timeout=90s&ref=main",
                Some("https://github.com/org/app main deploy"),
            ),
            (
                "github.com:org/app.git/deploy?ref=v1",
                Some("https://github.com/org/app.git v1 deploy"),
            ),
            (
                "https://gitlab.com/group/sub/app.git/deploy?version=v1",
                Some("https://gitlab.com/group/sub/app.git v1 deploy"),
            ),
            (
                "git@github.com:org/app.git//deploy?ref=v1",
                Some("ssh://git@github.com/org/app.git v1 deploy"),
            ),
            ("git::https://github.com/org/app", Some("https://github.com/org/app - ")),
            ("file:///srv/git/app//deploy", Some("file:///srv/git/app - deploy")),
            (
                "https://example.org/releases/v1/install.yaml",
                Some("https://example.org/releases/v1/install.yaml"),
            ),
            ("example.org/some/folder", None),
            ("../base", None),
            ("https://", None),
        ] {
            let shown = read(name).map(|(remote, path)| match remote {
                Remote::Git { url, reference } => {
                    format!("{url} {} {path}", reference.as_deref().unwrap_or("-"))
                }
                Remote::File { url } => url,
                _ => String::new(),
            });
            assert_eq!(shown.as_deref(), expected, "{name}");
        }
    }
}
