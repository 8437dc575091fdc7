//! Messages that are printed only once, or not at all.

use super::*;

/// kubectl also reads all documents of such a file.
#[test]
fn utf_16_is_read_and_not_rewritten() {
    let text = [CLASS, CLAIM, DEPLOYMENT].join("---\n");
    let folder = repository(&[]);
    let file = folder.path().join("all.yaml");
    for (mark, unit) in
        [([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]), ([0xfe, 0xff], u16::to_be_bytes)]
    {
        let units = text.encode_utf16().flat_map(unit);
        let bytes: Vec<u8> = mark.into_iter().chain(units).collect();
        fs::write(&file, &bytes).unwrap();
        let output = run(&folder, &["check", ".", "--format", "json"]);
        let findings = findings(&output);
        assert_eq!(findings[0]["rule"], "rolling-update-overlap");
        let line = 1 + text.lines().position(|line| line.contains("type: RollingUpdate")).unwrap();
        assert_eq!(findings[0]["line"], json!(line));
        let fixed = run(&folder, &["check", ".", "--fix"]);
        assert!(err(&fixed).contains("UTF-16"), "{}", err(&fixed));
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

/// kubectl has a built-in kustomize, which may accept files that another version refuses.
#[test]
fn what_kustomize_refuses_is_tried_with_kubectl() {
    use super::rendering::{check, class_and_claim, tools};
    let bin = or_skip!(tools(&["kubectl"]));
    let refusing = "#!/bin/sh\necho 'Error: unknown field' >&2\nexit 1\n";
    script(&bin.path().join("kustomize"), refusing);
    let folder = repository(&[
        ("kustomization.yaml", "resources: [web.yaml, claim.yaml]\n"),
        ("web.yaml", DEPLOYMENT),
        ("claim.yaml", &class_and_claim()),
    ]);
    let output = check(&folder, bin.path(), ". --format json");
    assert_eq!(findings(&output).len(), 1, "{}", err(&output));
}
