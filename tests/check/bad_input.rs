//! Files that cannot be read: named with their place, while the others are checked.

use super::*;

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_checked() {
    let folder = repository(&[
        ("class.yaml", CLASS),
        ("claim.yaml", CLAIM),
        ("web.yaml", DEPLOYMENT),
        ("broken.yaml", "a: 1\nb: [1"),
        ("template.yaml", "kind: Pod\n{{- if .Values.x }}\n"),
        (
            "typed.yaml",
            "---\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: t}\nspec:\n  replicas: three\n",
        ),
    ]);
    let output = run(&folder, &["check", ".", "--format", "json"]);
    assert_eq!(code(&output), 2);
    assert_eq!(findings(&output).len(), 1);
    let messages: Vec<&str> = err(&output).lines().collect();
    let expected = [
        "broken.yaml:2:4: This is not valid YAML: unclosed bracket '['.",
        "template.yaml:2:1: This is a Helm template that has not been rendered;",
        "typed.yaml:7:13: This Deployment cannot be read: invalid type: string \"three\",",
    ];
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
    for (message, start) in messages.iter().zip(expected) {
        assert!(message.starts_with(start), "{message}");
    }
}

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
    let twice = DEPLOYMENT.replace("replicas: 1", "replicas: 1\n  replicas: 2");
    let template = DEPLOYMENT.replace("replicas: 1", "replicas: {{ .Values.replicas }}");
    let files: Vec<Wrong> = vec![
        (
            "a-binary.yaml",
            b"\x7fELF\0\0\0".to_vec(),
            ": This is a binary file; expected YAML or JSON text.",
        ),
        (
            "b-bomb.yaml",
            bomb().into(),
            ":1:1: The aliases of this document stand for more than 400,000 values;",
        ),
        (
            "c-broken.yaml",
            b"kind: Pod\nspec: {a: [1\n".to_vec(),
            ":2:11: This is not valid YAML: ",
        ),
        (
            "d-twice.yaml",
            twice.into(),
            ":7:3: The key \"replicas\" is already set on line 6; expected every key once.",
        ),
        (
            "e-latin1.yaml",
            b"a: 1\nb: caf\xe9\n".to_vec(),
            ":2:7: This is not UTF-8 text; expected YAML or JSON in UTF-8.",
        ),
        (
            "f-template.yaml",
            template.into(),
            ":6:13: This is a Helm template that has not been rendered; expected plain YAML.",
        ),
        (
            "g-utf16.yaml",
            b"\xff\xfea\0:\0".to_vec(),
            ": This file is UTF-16 text; save it as UTF-8.",
        ),
        (
            "h-wrong.yaml",
            DEPLOYMENT.replace("replicas: 1", "replicas: many").into(),
            ":6:13: This Deployment cannot be read: invalid type: string \"many\", expected ",
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
    let large = fs::File::create(root.join("large.yaml")).unwrap();
    large.set_len(100_000_000).unwrap();
    symlink("itself.yaml", root.join("itself.yaml")).unwrap();
    symlink(".", root.join("around")).unwrap();
    (folder, files)
}

#[cfg(unix)]
#[test]
fn everything_wrong_at_once_hides_nothing() {
    let (folder, files) = everything_wrong();
    let output = run(&folder, &["check", "in", "--format", "json"]);
    assert_eq!(code(&output), 2);
    let mut expected: Vec<String> = files
        .iter()
        .map(|(name, _, message)| format!("in/{name}{message}"))
        .collect();
    expected.push("in/large.yaml: This file is larger than 64 MiB,".to_owned());
    expected.push("in/itself.yaml: This cannot be read: Too many levels of".to_owned());
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

/// Every format tells of a file that cannot be read.
#[test]
fn every_format_names_what_cannot_be_read() {
    let folder = repository(&[("broken.yaml", "a: 1\nb: [1")]);
    for (format, part) in [
        ("text", "1 could not be read."),
        ("json", "\"line\": 2,"),
        ("sarif", "\"executionSuccessful\": false"),
        ("junit", "errors=\"1\""),
        ("github", "::error file=broken.yaml,line=2,col=4"),
    ] {
        let output = run(&folder, &["check", ".", "--format", format]);
        assert_eq!(code(&output), 2, "{format}");
        assert!(out(&output).contains(part), "{format}: {}", out(&output));
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
    assert_eq!(code(&output), 2, "{}", err(&output));
    assert!(
        err(&output).starts_with("in/closed: This cannot be read: Permission denied"),
        "{}",
        err(&output)
    );
    assert_eq!(findings(&output).len(), 1, "the rest is checked");
}

/// Programs that read standard error see messages only.
#[test]
fn long_runs_are_silent_on_what_is_no_terminal() {
    let files: Vec<(String, String)> = (0..1000)
        .map(|number| (format!("{number}.yaml"), "a: 1\n".to_owned()))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let output = run(&repository(&files), &["check", "."]);
    assert_eq!((code(&output), err(&output)), (0, ""));
}
