//! The output in a terminal: the pictures of the documentation, and manifests that are hard to show
//! in a narrow window.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::output::program;
use crate::picture::{compare, without_colours};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A terminal with this number of columns: the end that shows the output, and the end that a
/// program writes to.
fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let seen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&seen).unwrap();
    unlockpt(&seen).unwrap();
    let name = ptsname(&seen, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let written = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&written, size).unwrap();
    (seen, written)
}

/// The program's output on a terminal with this number of columns.
fn printed(folder: &Path, columns: u16, arguments: &[&str]) -> String {
    shown(guard(folder, arguments), columns)
}

fn guard(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program(arguments);
    command.current_dir(folder).env("TERM", "xterm");
    for name in ["NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

fn shown(mut command: Command, columns: u16) -> String {
    let (seen, written) = terminal(columns);
    command.stdin(Stdio::null()).stdout(written);
    let mut program = command.spawn().unwrap();
    // The terminal closes when no process can write to it any more.
    drop(command);
    let mut bytes = Vec::new();
    // Linux reports by an error that the other end is closed.
    let _ = File::from(seen).read_to_end(&mut bytes);
    program.wait().unwrap();
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

#[test]
fn the_pictures_show_what_is_printed() {
    let command = "check --facts examples/facts examples/web.yaml";
    let arguments: Vec<&str> = command.split(' ').collect();
    let printed = printed(Path::new(ROOT), 80, &arguments);
    let all = format!("$ multi-attach-guard {command}\n{printed}");
    compare("finding", "A finding in a terminal", &all);
}

const CLAIM: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: standard}
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  strategy: {type: RollingUpdate}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: data
";

/// Files that are hard to show: their names and their bytes.
fn awkward() -> Vec<(&'static str, Vec<u8>)> {
    let both = format!("{CLAIM}---\n{DEPLOYMENT}");
    let with = |from: &str, to: &str| both.replace(from, to).into_bytes();
    let claim = "claimName: data";
    let [comment, blanks] = ["x", " "].map(|text| text.repeat(5000));
    let long = "n".repeat(253);
    let names = both
        .replace("name: data,", &format!("name: {long},"))
        .replace(claim, &format!("claimName: {long}"))
        .replace("name: web,", &format!("name: {long},"));
    let utf16 = "\u{feff}".encode_utf16().chain(both.encode_utf16());
    let many = (0..300)
        .map(|number| DEPLOYMENT.replace("name: web,", &format!("name: web-{number},")))
        .collect::<Vec<_>>()
        .join("---\n");
    vec![
        ("usual.yaml", both.clone().into_bytes()),
        ("names.yaml", names.into_bytes()),
        ("line.yaml", with(claim, &format!("{claim} #{comment}"))),
        ("far.yaml", with(claim, &format!("{blanks}{claim}"))),
        ("tabs.yaml", with(claim, "claimName:\tdata\t# \tx")),
        ("crlf.yaml", with("\n", "\r\n")),
        ("utf16.yaml", utf16.flat_map(u16::to_le_bytes).collect()),
        ("many.yaml", format!("{CLAIM}---\n{many}").into_bytes()),
    ]
}

/// Checks the lines at fault and the marks in them, in a window of `columns`.
fn shows_the_lines_at_fault(name: &str, columns: u16, printed: &str) {
    let lines = without_colours(printed);
    let all = lines.join("\n");
    assert!(!all.contains(['\x1b', '\r', '\t']), "{name}: {all}");
    assert!(all.contains("new pod starts before"), "{name}: {all}");
    let marked = |text: &str, sign: char| {
        let at = lines.iter().position(|line| line.contains(text))?;
        let start = lines[at].find(text)?;
        let column = lines[at][..start].chars().count();
        let below = lines[at + 1].chars().nth(column)?;
        Some(below == sign)
    };
    assert_eq!(marked("type: RollingUpdate", '^'), Some(true), "{name}: {all}");
    assert_eq!(marked("claimName:", '-'), Some(true), "{name}: {all}");
    // A window has at least 40 columns, and a frame with the line's number comes before each line.
    let most = usize::from(columns.max(40)) + "1234 | ".len() + "……".chars().count();
    let of_file = |line: &&String| line.starts_with(|first: char| first.is_ascii_digit());
    for line in lines.iter().filter(of_file).filter(|line| line.contains(" | ")) {
        assert!(line.chars().count() <= most, "{name}, {columns}: {line}");
    }
}

#[test]
fn any_file_is_shown_in_any_window() {
    for columns in [20, 60, 80, 200] {
        for (name, bytes) in awkward() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), bytes).unwrap();
            let printed = printed(folder.path(), columns, &["check", "."]);
            assert!(printed.contains("\x1b["), "{name} has no colours");
            shows_the_lines_at_fault(name, columns, &printed);
        }
    }
}

/// Commands and addresses are not folded, because they are pasted; a word longer than the window
/// has a line of its own.
#[test]
fn texts_are_folded_to_the_window() {
    let pasted = "Multi-Attach error for volume \"pvc-1\" Volume is already used by pod(s) web-1";
    for columns in [60, 90] {
        for arguments in [
            &["rules"][..],
            &["rules", "leftover-rolling-update"],
            &["capabilities", "longhorn"],
            &["diagnose", "--explain", pasted],
        ] {
            let text = printed(Path::new(ROOT), columns, arguments);
            assert!(text.lines().count() > 10, "{text}");
            let is_code = |line: &str| {
                let line = line.trim_start();
                line.starts_with("kubectl") || line.contains(['`', '/']) || line.contains("(attach")
            };
            let longer = |line: &&str| line.chars().count() > usize::from(columns);
            let unfolded: Vec<&str> =
                text.lines().filter(longer).filter(|line| !is_code(line)).collect();
            assert!(unfolded.is_empty(), "{arguments:?} at {columns}: {unfolded:#?}");
        }
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("web.yaml"), format!("{CLAIM}---\n{DEPLOYMENT}")).unwrap();
    let seen = printed(folder.path(), 80, &["check", "."]);
    let mut command = guard(folder.path(), &["check", "."]);
    command.env("NO_COLOR", "1");
    let plain = shown(command, 80);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    assert_eq!(without_colours(&seen), without_colours(&plain));
    for (variable, option, on_terminal, in_pipe) in [
        ("A=b", "auto", true, false),
        ("NO_COLOR=1", "auto", false, false),
        ("NO_COLOR=1", "always", true, true),
        ("CLICOLOR=0", "auto", false, false),
        ("TERM=dumb", "auto", false, false),
        ("FORCE_COLOR=1", "auto", true, true),
        ("CLICOLOR_FORCE=1", "auto", true, true),
        ("FORCE_COLOR=1", "never", false, false),
    ] {
        let (name, value) = variable.split_once('=').unwrap();
        let coloured = || {
            let mut check = guard(folder.path(), &["check", "--color", option, "."]);
            check.env(name, value);
            check
        };
        let there = shown(coloured(), 80);
        assert_eq!(there.contains('\x1b'), on_terminal, "{variable} {option}: {there:?}");
        let piped = coloured().output().unwrap().stdout;
        assert_eq!(piped.contains(&b'\x1b'), in_pipe, "{variable} {option}");
    }
    let output = guard(folder.path(), &["check", "."]).output().unwrap();
    let piped = String::from_utf8(output.stdout).unwrap();
    let title = piped.lines().next().unwrap();
    assert!(title.ends_with("(if class \"standard\" attaches)"), "a title is a line: {title}");
}
