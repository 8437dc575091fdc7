//! An editor's side of the Language Server Protocol, against the program: the findings are those of
//! `check`, at the same places, and the edits are those of `check --fix`.

#![cfg(unix)]
// The helpers of tests are outside of the functions that clippy recognizes as tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has nothing else to say"
)]

#[path = "../harness/case_files.rs"]
#[allow(dead_code, reason = "only the files of cases are needed here")]
mod case_files;
mod client;
mod corpus;
mod editors;
mod limits;
#[path = "../harness/picture.rs"]
mod picture;
mod protocol;
#[path = "../harness/shorthand.rs"]
#[allow(dead_code, reason = "cases write claims as any other object")]
mod shorthand;

use client::{Editor, check, folder, place_of};
use serde_json::{Value, json};

const CLAIM: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 1Gi}}}
";

/// The characters before the field at fault are surrogate pairs in UTF-16.
const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}, annotations: {note: 💾💾}}, spec: {containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}, strategy: {type: RollingUpdate}}
";

/// The text of the first line that has `part`, as a position of the start of `part`.
fn at(text: &str, part: &str) -> Value {
    let (number, line) =
        text.lines().enumerate().find(|(_, line)| line.contains(part)).expect("the text has it");
    let before = &line[..line.find(part).unwrap()];
    json!({"line": number, "character": before.encode_utf16().count()})
}
