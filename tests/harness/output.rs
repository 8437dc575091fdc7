//! The program, run as users run it, and its output.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multi-attach-guard"));
    command.args(arguments);
    command
}

/// Runs a command with this input.
pub(crate) fn fed(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // On a thread of its own, because the command may write before it has read everything. A
        // command that reads no input may have ended already.
        scope.spawn(move || {
            let _ = pipe.write_all(input.as_bytes());
        });
        child.wait_with_output().unwrap()
    })
}

pub(crate) fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(crate) fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("the program was not killed")
}

/// The JSON report in the output.
#[track_caller]
pub(crate) fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The findings in that report.
#[track_caller]
pub(crate) fn findings(output: &Output) -> Vec<Value> {
    report(output)["findings"].as_array().unwrap().clone()
}

#[track_caller]
pub(crate) fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is missing in\n{text}");
}

#[track_caller]
pub(crate) fn begins(text: &str, start: &str) {
    assert!(text.starts_with(start), "{start:?} does not begin\n{text}");
}
