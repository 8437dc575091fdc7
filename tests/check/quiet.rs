//! What is said once, and what is not said.

use super::*;

fn text_of(files: &[(&str, &str)]) -> String {
    let output = run(&repository(files), &["check", "."]);
    format!("{}{}", out(&output), err(&output))
}

#[test]
fn an_old_version_is_said_once_for_each_kind() {
    let old = |kind: &str, name: &str| {
        format!(
            "apiVersion: apps/v1beta1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{template: {{spec: {{}}}}}}\n"
        )
    };
    let files = [
        ("a.yaml", old("Deployment", "a")),
        ("b.yaml", old("Deployment", "b")),
        ("c.yaml", old("Deployment", "c")),
        ("d.yaml", old("StatefulSet", "d")),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let text = text_of(&files);
    assert_eq!(
        text.matches("write apiVersion: apps/v1").count(),
        2,
        "{text}"
    );
    assert!(
        text.contains("The same holds for 2 more objects of kind Deployment."),
        "{text}"
    );
}

#[test]
fn what_would_settle_an_assumption_is_said_once() {
    let claim = CLAIM.replace("gp3", "somewhere");
    let other = DEPLOYMENT
        .replace("web", "api")
        .replace("claimName: data", "claimName: more");
    let more = claim.replace("name: data", "name: more");
    let folder = repository(&[
        ("a.yaml", &format!("{claim}---\n{DEPLOYMENT}")),
        ("b.yaml", &format!("{more}---\n{other}")),
    ]);
    let wide = run(&folder, &["check", ".", "--format", "wide"]);
    let text = out(&wide);
    assert_eq!(text.matches("warning[").count(), 2, "{text}");
    assert_eq!(text.matches("To settle it").count(), 1, "{text}");
    let brief = run(&folder, &["check", "."]);
    let text = out(&brief);
    assert_eq!(
        text.matches("(if class \"somewhere\" attaches)").count(),
        2,
        "{text}"
    );
}

#[test]
fn volumes_that_two_workloads_share_are_one_finding() {
    let more = CLAIM.replace("name: data", "name: more");
    let shares = |name: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  strategy: {{type: Recreate}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers: [{{name: a, image: a, volumeMounts: [{{name: data, mountPath: /a}}, {{name: more, mountPath: /b}}]}}]\n      volumes:\n      - {{name: data, persistentVolumeClaim: {{claimName: data}}}}\n      - {{name: more, persistentVolumeClaim: {{claimName: more}}}}\n"
        )
    };
    let all = [CLAIM, &more, CLASS, &shares("a"), &shares("b")].join("---\n");
    let text = text_of(&[("all.yaml", &all)]);
    assert_eq!(
        text.matches("[workloads-share-volume]").count(),
        1,
        "{text}"
    );
    for claim in ["data", "more"] {
        let mark = format!("claimName: {claim}");
        assert!(text.contains(&mark), "{text}");
    }
    let json = run(
        &repository(&[("all.yaml", &all)]),
        &["check", ".", "--format", "json"],
    );
    assert!(
        out(&json).contains("The same holds for claim \\\"more\\\"."),
        "{}",
        out(&json)
    );
}

#[test]
fn many_reasons_are_counted() {
    let Some(tools) = super::rendering::tools(&["kustomize"]) else {
        return;
    };
    let files: Vec<(String, String)> = (0..13)
        .map(|number| {
            let name = format!("k{number:02}/kustomization.yaml");
            (name, format!("resources: [gone-{number}.yaml]\n"))
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    let output = super::rendering::check(&repository(&files), tools.path(), ".");
    let text = out(&output);
    assert_eq!(text.matches(" was not rendered: ").count(), 10, "{text}");
    let rest =
        "3 kustomizations (k10, k11, k12) were not rendered either, each for its own reason;";
    assert!(text.contains(rest), "{text}");
}

/// kubectl reads all documents of such a file, too.
#[test]
fn utf_16_is_read_and_not_rewritten() {
    let text = [CLASS, CLAIM, DEPLOYMENT].join("---\n");
    let folder = repository(&[]);
    let file = folder.path().join("all.yaml");
    for (mark, unit) in [
        ([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ([0xfe, 0xff], u16::to_be_bytes),
    ] {
        let units = text.encode_utf16().flat_map(unit);
        let bytes: Vec<u8> = mark.into_iter().chain(units).collect();
        fs::write(&file, &bytes).unwrap();
        let output = run(&folder, &["check", ".", "--format", "json"]);
        let findings = findings(&output);
        assert_eq!(findings[0]["rule"], "rolling-update-overlap");
        let line = 1 + text
            .lines()
            .position(|it| it.contains("strategy:"))
            .unwrap();
        assert_eq!(findings[0]["line"], json!(line));
        let fixed = run(&folder, &["check", ".", "--fix"]);
        assert!(err(&fixed).contains("UTF-16"), "{}", err(&fixed));
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

/// kubectl has a kustomize of its own, which may take what another version refuses.
#[cfg(unix)]
#[test]
fn what_kustomize_refuses_is_tried_with_kubectl() {
    use super::rendering::{check, class_and_claim, tools};
    use std::os::unix::fs::PermissionsExt;
    let Some(bin) = tools(&["kubectl"]) else {
        return;
    };
    let refusing = bin.path().join("kustomize");
    fs::write(
        &refusing,
        "#!/bin/sh\necho 'Error: unknown field' >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&refusing, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = repository(&[
        ("kustomization.yaml", "resources: [web.yaml, claim.yaml]\n"),
        ("web.yaml", DEPLOYMENT),
        ("claim.yaml", &class_and_claim()),
    ]);
    let output = check(&folder, bin.path(), ". --format json");
    assert_eq!(findings(&output).len(), 1, "{}", err(&output));
}
