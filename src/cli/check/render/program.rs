//! Runs a program that renders, with nothing to reach and no time to waste.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::group::Groups;
use manifest::source::MAX_BYTES;

/// The most that is kept of what a program says to people.
const COMPLAINT: u64 = 64 << 10;

/// The most characters of it that are passed on.
const SHOWN: usize = 300;

/// A proxy that does not answer: no program listens on the port of the discard service.
const NOWHERE: &str = "127.0.0.1:9";

/// What Helm says after most complaints, of an option that is not ours.
const ADVICE: &str = "Use --debug flag to render out invalid YAML";

/// Why a program rendered nothing. Each is the end of a sentence.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{program} cannot be started: {error}")]
    Start { program: String, error: io::Error },
    #[error("{program} cannot be read: {error}")]
    Read { program: String, error: io::Error },
    #[error("{program} was still running after {} s and was stopped", limit.as_secs())]
    Slow { program: String, limit: Duration },
    #[error("{program} writes more than {} MiB", MAX_BYTES >> 20)]
    Large { program: String },
    #[error("{program} writes text that is not UTF-8")]
    NotUtf8 { program: String },
    #[error("{}", nothing_is_fetched(&format!("it asks for {url}")))]
    Fetches { url: String },
    #[error("{program} says: {complaint}")]
    Refused { program: String, complaint: String },
    #[error("{program} ended with {status} and said nothing")]
    Silent { program: String, status: ExitStatus },
}

/// The reason not to render what is not all on this machine, and the way out.
pub(super) fn nothing_is_fetched(needs: &str) -> String {
    format!(
        "{needs}, and nothing is fetched; render it yourself and pipe the result into `check -`"
    )
}

/// The program `name`, where the variable PATH finds it.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&std::env::var_os("PATH")?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&file))
        .find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// What the program writes when it is started with these arguments.
///
/// It finds no network, no cluster, no plugins and no repositories: proxies lead
/// nowhere, git may use no transport, and `empty`, a folder with nothing in it,
/// stands for all folders of Helm's and kustomize's own. It is one of the `groups`.
pub(super) async fn output(
    program: &Path,
    arguments: &[OsString],
    empty: &Path,
    groups: &Groups,
    limit: Duration,
) -> Result<String, Failure> {
    let name = || {
        program
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Groups::lead(&mut command);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("HELM_") {
            command.env_remove(variable);
        }
    }
    for variable in [
        "HELM_PLUGINS",
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "KUSTOMIZE_PLUGIN_HOME",
    ] {
        command.env(variable, empty);
    }
    command
        .env("KUBECONFIG", empty.join("config"))
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy");
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        command.env(variable, format!("http://{NOWHERE}"));
    }

    let start = |error| Failure::Start {
        program: name(),
        error,
    };
    let mut child = command.spawn().map_err(start)?;
    let group = groups.of(&child);
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(start(io::ErrorKind::BrokenPipe.into()));
    };
    let run = async {
        // Once one of the pipes is full, the rest is not waited for.
        let (text, complaint) =
            tokio::try_join!(all_of(stdout, MAX_BYTES), all_of(stderr, COMPLAINT))?;
        if text.len() as u64 > MAX_BYTES {
            return Ok((text, complaint, None));
        }
        Ok((text, complaint, Some(child.wait().await?)))
    };
    // When the time is over, the group is dropped, and stopped with that.
    let ended: io::Result<_> = timeout(limit, run).await.map_err(|_| Failure::Slow {
        program: name(),
        limit,
    })?;
    let (text, complaint, status) = ended.map_err(|error| Failure::Read {
        program: name(),
        error,
    })?;
    let Some(status) = status else {
        return Err(Failure::Large { program: name() });
    };
    if let Some(group) = group {
        group.ended();
    }
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        if let Some(url) = fetched(&complaint) {
            return Err(Failure::Fetches {
                url: url.to_owned(),
            });
        }
        let complaint = shortened(&complaint);
        return Err(if complaint.is_empty() {
            Failure::Silent {
                program: name(),
                status,
            }
        } else {
            Failure::Refused {
                program: name(),
                complaint,
            }
        });
    }
    String::from_utf8(text).map_err(|_| Failure::NotUtf8 { program: name() })
}

/// What can be read, and one byte more than `most` where there is more.
async fn all_of(pipe: impl AsyncRead + Unpin, most: u64) -> io::Result<Vec<u8>> {
    let mut pipe = pipe;
    let mut bytes = Vec::new();
    (&mut pipe).take(most + 1).read_to_end(&mut bytes).await?;
    if most == COMPLAINT {
        // A program must not stand still because nobody listens.
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// The URL that a program in Go asked [`NOWHERE`] for, as `net/url` words it:
/// `Get "https://host/path": proxyconnect tcp: dial tcp 127.0.0.1:9: …`.
fn fetched(complaint: &str) -> Option<&str> {
    let (before, _) =
        complaint.split_once(&format!("\": proxyconnect tcp: dial tcp {NOWHERE}:"))?;
    // Within a complaint that quotes it, the quotation marks are escaped.
    let (_, url) = before.trim_end_matches('\\').rsplit_once('"')?;
    (url.contains("://") && !url.contains(char::is_control)).then_some(url)
}

/// The complaint on one line: its last paragraph says most, and `Error:` nothing. Of a
/// long one, the end names the cause.
fn shortened(complaint: &str) -> String {
    let lines: Vec<&str> = complaint
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let from = lines
        .iter()
        .rposition(|line| line.starts_with("Error: "))
        .unwrap_or(0);
    let text = lines[from.min(lines.len())..].join(" ");
    let text = text.strip_prefix("Error: ").unwrap_or(&text);
    let text = text.strip_suffix(ADVICE).unwrap_or(text);
    let text = text.trim_end().trim_end_matches(['.', '!']);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let letters: Vec<char> = text.chars().map(plain).collect();
    if letters.len() <= SHOWN {
        return letters.into_iter().collect();
    }
    let start: String = letters[..SHOWN / 3].iter().collect();
    let end: String = letters[letters.len() - (SHOWN - SHOWN / 3)..]
        .iter()
        .collect();
    format!("{start} … {end}")
}

#[cfg(test)]
mod tests {
    use super::{fetched, shortened};

    #[test]
    fn what_asks_for_a_network_is_told_by_its_url() {
        let table = [
            (
                "accumulating resources: [loading file]: Get \"https://example.org/a.json\": proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused",
                Some("https://example.org/a.json"),
            ),
            (
                r#"accumulating resources from 'a': 'Get \"https://example.org/a.json\": proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused'"#,
                Some("https://example.org/a.json"),
            ),
            (
                "Get \"https://example.org/a.json\": dial tcp: lookup example.org: no such host",
                None,
            ),
            ("\": proxyconnect tcp: dial tcp 127.0.0.1:9: x", None),
            ("", None),
        ];
        for (complaint, url) in table {
            assert_eq!(fetched(complaint), url, "{complaint}");
        }
    }

    #[test]
    fn complaints_fit_on_a_line() {
        let table = [
            ("", ""),
            ("Error: no such chart.\n", "no such chart"),
            ("Error: a name is required!\n", "a name is required"),
            (
                "level=WARN msg=x\nError: cannot load\n  because of y\n\nUse --debug flag to render out invalid YAML\n",
                "cannot load because of y",
            ),
            ("two\nlines\n", "two lines"),
        ];
        for (complaint, line) in table {
            assert_eq!(shortened(complaint), line);
        }
        let long = shortened(&format!("a chart {}the cause", "ü".repeat(1000)));
        assert_eq!(long.chars().count(), super::SHOWN + 3);
        assert!(long.starts_with("a chart ü") && long.ends_with("üthe cause"));
    }
}
