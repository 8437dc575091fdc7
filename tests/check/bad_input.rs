//! Unreadable files are reported with their place, and the others are checked.

use super::*;

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

/// The superuser may read everything, so the program then runs as another user.
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
    command.args(["check", "in", "--format", "json"]).current_dir(folder.path());
    if fs::metadata(folder.path()).unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = loop {
        match command.output() {
            // A child process of another test still holds the copy open until it executes its own
            // program.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    permit(&folder.path().join("in/closed"), 0o755);
    assert_eq!(code(&output), 1, "{}", err(&output));
    begins(err(&output), "in/closed: This cannot be read: Permission denied");
    assert_eq!(findings(&output).len(), 1, "the rest is checked");
}
