//! The manifests in `examples/right`, which users copy: each is judged to be right.

use crate::output::{out, program};

#[test]
fn manifests_to_copy_have_no_finding() {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = std::fs::read_dir(format!("{root}/examples/right")).unwrap();
    let mut judged = 0;
    for entry in folder {
        let path = entry.unwrap().path();
        let file = path.display().to_string();
        for arguments in [&["check", &file][..], &["check", "--facts", "examples/facts", &file]] {
            let output = program(arguments).current_dir(root).output().unwrap();
            let said = out(&output);
            assert!(output.status.success(), "{arguments:?}: {said}");
            assert!(said.contains("No findings"), "{arguments:?}: {said}");
            judged += 1;
        }
    }
    assert!(judged >= 14, "{judged}");
}
