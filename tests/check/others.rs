//! `rules`, `capabilities` and what packages need.

use super::*;

#[test]
fn rules_explain_themselves() {
    let folder = shop();
    let list = run(&folder, &["rules"]);
    assert_eq!(out(&list).lines().count(), engine::rules::RULES.len());
    let one = run(&folder, &["rules", "single-pod-volume"]);
    assert!(
        out(&one).starts_with("# single-pod-volume\n\n"),
        "{}",
        out(&one)
    );
    let unknown = run(&folder, &["rules", "nope"]);
    assert_eq!(code(&unknown), 2);
    assert!(err(&unknown).starts_with("There is no rule \"nope\". The rules are: "));
}

#[test]
fn capabilities_are_listed_by_class() {
    let folder = shop();
    let text = run(&folder, &["capabilities", "--facts", "deploy"]);
    for part in [
        "gp3 (ebs.csi.aws.com, AWS Elastic Block Store (CSI))\n",
        "  Filesystem  ReadWriteOnce, ReadWriteOncePod\n",
        "ReadWriteMany: possible only when StorageClass parameter \"type\" is \"io2\"\n",
    ] {
        assert!(
            out(&text).contains(part),
            "{part:?} is missing in\n{}",
            out(&text)
        );
    }
    let json = run(
        &folder,
        &["capabilities", "--facts", "deploy", "--format", "json"],
    );
    let json: Value = serde_json::from_str(out(&json)).unwrap();
    assert_eq!(json["classes"][0]["class"], "gp3");
    assert_eq!(code(&run(&folder, &["capabilities"])), 2);
}

#[test]
fn packages_get_completions_and_manual_pages() {
    let folder = shop();
    assert_eq!(code(&run(&folder, &["dist", "dist"])), 0);
    for (file, part) in [
        ("completions/multi-attach-guard.bash", "--fail-on"),
        ("completions/_multi-attach-guard", "--fail-on"),
        ("man/multi-attach-guard-check.1", "fail\\-on"),
        ("man/multi-attach-guard-snapshot.1", "REDACTED"),
    ] {
        let text = fs::read_to_string(folder.path().join("dist").join(file)).unwrap();
        assert!(text.contains(part), "{file}");
    }
}

#[test]
fn bash_completes_what_follows_a_command() {
    let folder = shop();
    assert_eq!(code(&run(&folder, &["dist", "dist"])), 0);
    let output = Command::new("bash")
        .args([
            "-euc",
            r#"source dist/completions/multi-attach-guard.bash
            function=$(complete -p multi-attach-guard | sed 's/.* -F \([^ ]*\) .*/\1/')
            COMP_WORDS=(multi-attach-guard check --fail-on d) COMP_CWORD=3
            "$function" multi-attach-guard d --fail-on
            echo "${COMPREPLY[@]}""#,
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(out(&output), "deny\n", "{}", err(&output));
}
