//! Files that cannot be read: named with their place, while the others are checked.

use super::*;

/// Aliases that multiply to ten thousand million nodes.
fn bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
    }
    text
}

/// A file's name, its bytes, and how the message about it begins.
#[cfg(unix)]
type Wrong = (&'static str, Vec<u8>, &'static str);

/// A folder with everything that can be wrong with a file, around one Deployment at
/// fault.
#[cfg(unix)]
fn everything_wrong() -> (TempDir, Vec<Wrong>) {
    use std::os::unix::fs::symlink;
    let latin1 = [b"# caf\xe9\n", DEPLOYMENT.as_bytes()].concat();
    let files: Vec<Wrong> = vec![
        (
            "b-bomb.yaml",
            format!("apiVersion: v1\nkind: Pod\n{}", bomb()).into(),
            ":1:1: The aliases of this document stand for more than 400,000 values;",
        ),
        (
            "c-broken.yaml",
            b"kind: Pod\napiVersion: v1\nspec: {a: [1\n".to_vec(),
            ":3:11: This is not valid YAML: ",
        ),
        (
            "e-latin1.yaml",
            latin1,
            ":1:6: This is not UTF-8 text; expected YAML or JSON in UTF-8.",
        ),
        (
            "h-wrong.yaml",
            DEPLOYMENT.replace("replicas: 1", "replicas: many").into(),
            ":6:13: This Deployment cannot be read: expected a whole number, found the text \"many\"",
        ),
    ];
    let folder = repository(&[
        ("in/class.yaml", CLASS),
        ("in/claim.yaml", CLAIM),
        ("in/web.yaml", DEPLOYMENT),
    ]);
    let root = folder.path().join("in");
    for (name, bytes, _) in &files {
        fs::write(root.join(name), bytes).unwrap();
    }
    // None of these is a manifest, whatever is wrong with it.
    fs::write(root.join("a-binary.yaml"), b"\x7fELF\0\0\0").unwrap();
    fs::write(root.join("d-values.yaml"), "a: [1\n").unwrap();
    let large = fs::File::create(root.join("large.yaml")).unwrap();
    large.set_len(2 << 30).unwrap();
    symlink("itself.yaml", root.join("itself.yaml")).unwrap();
    symlink(".", root.join("around")).unwrap();
    (folder, files)
}

#[cfg(unix)]
#[test]
fn everything_wrong_at_once_hides_nothing() {
    let (folder, files) = everything_wrong();
    let output = run(&folder, &["check", "in", "--format", "json"]);
    assert_eq!(code(&output), 1);
    let mut expected: Vec<String> = files
        .iter()
        .map(|(name, _, message)| format!("in/{name}{message}"))
        .collect();
    expected.push("in/large.yaml: This file is larger than 64 MiB,".to_owned());
    let messages: Vec<&str> = err(&output).lines().collect();
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
    for expected in expected {
        assert!(
            messages
                .iter()
                .any(|message| message.starts_with(&expected)),
            "{expected:?} is not in {messages:#?}"
        );
    }
    let found = findings(&output);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["file"], "in/web.yaml");
    let report: Value = serde_json::from_str(out(&output)).unwrap();
    assert_eq!(report["summary"]["unreadable"], messages.len());
    assert_eq!(report["summary"]["links"], 1);
}

/// Other systems refuse such names.
#[cfg(target_os = "linux")]
#[test]
fn files_with_names_that_are_no_text_are_checked_and_repaired() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = repository(&[]);
    let odd = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    let all = odd.join("all.yaml");
    fs::write(&all, format!("{CLASS}---\n{CLAIM}---\n{DEPLOYMENT}")).unwrap();
    for (format, _) in report::Format::ALL.map(report::Format::documented) {
        let output = run(&folder, &["check", ".", "--format", format]);
        assert_eq!(code(&output), 1, "{format}: {output:?}");
    }
    let output = run(&folder, &["check", ".", "--format", "json"]);
    assert_eq!(findings(&output)[0]["file"], "caf\u{fffd}/all.yaml");
    assert_eq!(code(&run(&folder, &["check", ".", "--fix"])), 0);
    assert!(fs::read_to_string(all).unwrap().contains("Recreate"));
}

#[cfg(unix)]
#[test]
fn repairing_leaves_what_cannot_be_read_alone() {
    let (folder, files) = everything_wrong();
    let output = run(&folder, &["check", "in", "--fix"]);
    assert_eq!(code(&output), 2);
    let read = |name: &str| fs::read(folder.path().join("in").join(name)).unwrap();
    assert_eq!(
        read("web.yaml"),
        DEPLOYMENT.replace("RollingUpdate", "Recreate").as_bytes()
    );
    for (name, bytes, _) in files {
        assert_eq!(read(name), bytes, "{name}");
    }
}

/// The superuser may read everything, so the program runs as somebody else then.
#[cfg(unix)]
#[test]
fn a_directory_that_may_not_be_read_is_named() {
    use std::io::ErrorKind;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::thread;
    const NOBODY: u32 = 65534;
    let folder = repository(&[
        ("in/class.yaml", CLASS),
        ("in/claim.yaml", CLAIM),
        ("in/closed/a.yaml", DEPLOYMENT),
        ("in/web.yaml", DEPLOYMENT),
    ]);
    let permit = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(folder.path(), 0o755);
    permit(&folder.path().join("in/closed"), 0o000);
    let program = folder.path().join("program");
    fs::copy(env!("CARGO_BIN_EXE_multi-attach-guard"), &program).unwrap();
    let mut command = Command::new(program);
    command
        .args(["check", "in", "--format", "json"])
        .current_dir(folder.path());
    if fs::metadata(folder.path()).unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = loop {
        match command.output() {
            // Another test's child still holds the copy open, until its own program starts.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    permit(&folder.path().join("in/closed"), 0o755);
    assert_eq!(code(&output), 1, "{}", err(&output));
    begins(
        err(&output),
        "in/closed: This cannot be read: Permission denied",
    );
    assert_eq!(findings(&output).len(), 1, "the rest is checked");
}

/// Programs that read standard error see messages only.
#[test]
fn long_runs_are_silent_on_what_is_no_terminal() {
    let files: Vec<(String, String)> = (0..1000)
        .map(|number| (format!("{number}.yaml"), "a: 1\n".to_owned()))
        .collect();
    let files = borrowed(&files);
    let output = run(&repository(&files), &["check", "."]);
    let nothing = "Nothing was judged in .: no file holds a workload, a claim or an autoscaler that could be read.\n";
    assert_eq!((code(&output), err(&output)), (0, nothing));
}
