//! `diagnose --explain -`: a text on standard input.

use crate::output::{code, err, fed, has, out, program};

#[test]
fn standard_input_is_explained() {
    let mut explain = program(&["diagnose", "--explain", "-"]);
    let text = "Name: web-1\nNamespace: shop\nNode: n1\nEvents:\n  Warning  FailedMount  Unable to attach or mount volumes: unmounted volumes=[v]\n  Warning  BackOff  restarting\n";
    let explained = fed(&mut explain, text);
    assert_eq!(code(&explained), 0, "{}", err(&explained));
    for part in ["Pod shop web-1", "diagnose -n shop pod/web-1", "Warning  BackOff  restarting"] {
        has(out(&explained), part);
    }
    let unknown = fed(&mut explain, "Back-off pulling image\n");
    assert_eq!(code(&unknown), 2);
    has(err(&unknown), "No line of this text is known");
}
