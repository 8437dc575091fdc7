//! Runs a program that renders, within limits.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::group::Group;
use manifest::error::MAX_BYTES;

/// The most bytes of memory that a program may use. The largest known chart needs a third.
pub(super) const MAX_MEMORY: u64 = 1 << 30;

/// The most bytes of a program's stderr that are kept.
const COMPLAINT: u64 = 64 << 10;

/// The most characters of it that are shown.
const SHOWN: usize = 300;

/// A proxy that does not answer: no program listens on the port of the discard service.
pub(super) const NOWHERE: &str = "127.0.0.1:9";

/// A sentence at the end of most of Helm's messages. It names an option that this program does not
/// have.
const ADVICE: &str = "Use --debug flag to render out invalid YAML";

/// The reason why a program rendered nothing. Each is the end of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("it cannot be copied: {0}")]
    Copy(io::Error),
    #[error("{program} was still running after {} s and was stopped", limit.as_secs_f64().ceil())]
    Slow { program: String, limit: Duration },
    #[error("it asks for {url}")]
    Fetches { url: String },
    #[error("{program} says: {}", shortened(complaint))]
    Refused { program: String, complaint: String },
    #[error("{0}")]
    Other(String),
}

/// The program `name`, if the variable PATH leads to it.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    folders().into_iter().map(|folder| folder.join(&file)).find(|path| is_program(path))
}

/// The folders of the variable PATH that do not depend on the working directory.
pub(super) fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
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

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    /// The most bytes of a file that it writes, if the system can limit that.
    pub(crate) file: u64,
}

/// The output of the command of the program `name`, which leads a group.
pub(crate) async fn output(
    mut command: Command,
    name: &str,
    limits: Limits,
) -> Result<String, Failure> {
    let limit = limits.time;
    let other = |problem: &str| Failure::Other(format!("{name} {problem}"));
    let start = |error: io::Error| other(&format!("cannot be started: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Group::lead(&mut command);
    let mut child = command.spawn().map_err(start)?;
    let group = Group::of(&child);
    restrict(&child, limits).map_err(start)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(start(io::ErrorKind::BrokenPipe.into()));
    };
    // If the time is over, the group is dropped, which stops it.
    let (text, complaint, status) = timeout(limit, end_of(child, stdout, stderr))
        .await
        .map_err(|_| Failure::Slow { program: name.to_owned(), limit })?
        .map_err(|error| other(&format!("cannot be read: {error}")))?;
    let Some(status) = status else {
        let most = MAX_BYTES >> 20;
        return Err(other(&format!("writes more than {most} MiB")));
    };
    if let Some(group) = group {
        group.ended();
    }
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        return Err(failure(name, status, &complaint));
    }
    String::from_utf8(text).map_err(|_| other("writes text that is not UTF-8"))
}

/// The output, the complaint and the status of a program. Without a status, the output reached its
/// limit.
async fn end_of(
    mut child: Child,
    stdout: ChildStdout,
    stderr: ChildStderr,
) -> io::Result<(Vec<u8>, Vec<u8>, Option<ExitStatus>)> {
    // If stdout exceeds its limit, its pipe is closed and the program is not waited for.
    let (text, complaint) = tokio::try_join!(all_of(stdout, MAX_BYTES), all_of(stderr, COMPLAINT))?;
    let status = if text.len() as u64 > MAX_BYTES { None } else { Some(child.wait().await?) };
    Ok((text, complaint, status))
}

/// Limits the memory and the file size of the program and of its child processes.
#[cfg(target_os = "linux")]
fn restrict(child: &Child, limits: Limits) -> io::Result<()> {
    use rustix::process::Pid;
    let Some(child) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
        return Ok(());
    };
    match set_limits(Some(child), Some(MAX_MEMORY), Some(limits.file)) {
        // The program has already ended.
        Err(rustix::io::Errno::SRCH) => Ok(()),
        limited => Ok(limited?),
    }
}

/// Sets the limits that are given for the process, or for this one.
#[cfg(target_os = "linux")]
pub(super) fn set_limits(
    process: Option<rustix::process::Pid>,
    memory: Option<u64>,
    file_size: Option<u64>,
) -> rustix::io::Result<()> {
    use rustix::process::{Resource, Rlimit, prlimit};
    for (resource, most) in [(Resource::Data, memory), (Resource::Fsize, file_size)] {
        if most.is_some() {
            let limit = Rlimit { current: most, maximum: most };
            prlimit(process, resource, limit)?;
        }
    }
    Ok(())
}

/// On other systems, a process can limit only itself before it starts the program.
#[cfg(not(target_os = "linux"))]
fn restrict(_child: &Child, _limits: Limits) -> io::Result<()> {
    Ok(())
}

/// The reason why a program failed, from its message.
fn failure(program: &str, status: ExitStatus, complaint: &str) -> Failure {
    if let Some(url) = fetched(complaint) {
        let url = url.to_owned();
        return Failure::Fetches { url };
    }
    let no_memory = ["out of memory", "cannot allocate memory"];
    if complaint.contains("fatal error: ")
        && no_memory.iter().any(|words| complaint.contains(words))
    {
        let most = MAX_MEMORY >> 20;
        return Failure::Other(format!("{program} needs more than {most} MiB of memory"));
    }
    match complaint.trim() {
        "" => Failure::Other(format!("{program} ended with {status} and said nothing")),
        complaint => {
            Failure::Refused { program: program.to_owned(), complaint: complaint.to_owned() }
        }
    }
}

/// The bytes from the pipe, at most `most` and one more.
async fn all_of(mut pipe: impl AsyncRead + Unpin, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut pipe).take(most + 1).read_to_end(&mut bytes).await?;
    if most == COMPLAINT {
        // A program must not block because nobody reads its pipe.
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// The URL that a Go program requested and did not reach, in the words of `net/url`:
/// `Get "https://host/path": proxyconnect tcp: dial tcp 127.0.0.1:9: …`, or without the proxy.
fn fetched(complaint: &str) -> Option<&str> {
    let (before, _) = ["\": proxyconnect tcp: dial ", "\": dial tcp"]
        .iter()
        .find_map(|failed| complaint.split_once(failed))?;
    // If another message quotes this one, the quotation marks are escaped.
    let (_, url) = before.trim_end_matches('\\').rsplit_once('"')?;
    (url.contains("://") && !url.contains(char::is_control)).then_some(url)
}

/// The complaint on one line: its last paragraph is the most specific, and `Error:` adds nothing.
/// If it is long, its end names the cause.
fn shortened(complaint: &str) -> String {
    let lines: Vec<&str> =
        complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.iter().rposition(|line| line.starts_with("Error: ")).unwrap_or(0);
    let text = lines[from..].join(" ");
    let text = text.strip_prefix("Error: ").unwrap_or(&text);
    let text = text.strip_suffix(ADVICE).unwrap_or(text);
    let letters: Vec<char> = innermost(text.trim_end().trim_end_matches(['.', '!']))
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if letters.len() <= SHOWN {
        return letters.into_iter().collect();
    }
    let (start, rest) = letters.split_at(SHOWN / 3);
    let end = &rest[letters.len() - SHOWN..];
    let shown = |part: &[char]| part.iter().collect::<String>();
    format!("{} … {}", shown(start), shown(end))
}

/// Kustomize's message about the innermost resource. Kustomize wraps the cause in one sentence for
/// each kustomization on the way, and then adds what else it tried.
fn innermost(text: &str) -> &str {
    const FOLDER: &str = "recursed accumulation of path '";
    let start = text.rfind("accumulating resources from '").unwrap_or(0);
    let text = &text[start..];
    let text = text.split_once("': must build at directory: ").map_or(text, |(cause, _)| cause);
    text.split_once(FOLDER)
        .and_then(|(_, rest)| rest.split_once("': "))
        .map_or(text, |(_, cause)| cause)
}

#[cfg(test)]
mod tests {
    use super::{fetched, shortened};

    #[test]
    fn what_asks_for_a_network_is_recognised_by_its_url() {
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
                "Get \"http://127.0.0.1:80/a\": dial tcp 127.0.0.1:80: connect: network is unreachable",
                Some("http://127.0.0.1:80/a"),
            ),
            ("a file named \"https://example.org/a\" is not there", None),
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
            (
                "Error: accumulating resources: accumulation err='accumulating resources from '../a': '/a' must resolve to a file': recursed: accumulating resources: accumulation err='accumulating resources from 'b.yaml': it holds no kind': must build at directory: '/a/b.yaml': file is not directory",
                "accumulating resources from 'b.yaml': it holds no kind",
            ),
            (
                "Error: accumulating resources: accumulation err='accumulating resources from 'root/a': '/a' must resolve to a file': recursed accumulation of path '/a': loading KV pairs: no such file",
                "loading KV pairs: no such file",
            ),
        ];
        for (complaint, line) in table {
            assert_eq!(shortened(complaint), line);
        }
        let long = shortened(&format!("a chart {}the cause", "ü".repeat(1000)));
        assert_eq!(long.chars().count(), super::SHOWN + 3);
        assert!(long.starts_with("a chart ü") && long.ends_with("üthe cause"));
    }
}
