//! `rules`, `capabilities` and what packages need.

use super::*;

#[test]
fn rules_explain_themselves() {
    let folder = shop();
    let list = run(&folder, &["rules"]);
    assert_eq!(out(&list).lines().count(), engine::rules::RULES.len());
    let one = run(&folder, &["rules", "single-pod-volume"]);
    begins(out(&one), "# single-pod-volume\n\n");
    has(
        out(&run(&folder, &["rules", "impossible-name"])),
        "DNS-1123",
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
        has(out(&text), part);
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
fn capabilities_of_a_product_need_no_cluster() {
    let folder = repository(&[]);
    for (name, part) in [
        ("ebs", "\"type\" is \"io2\""),
        (
            "ebs.csi.aws.com",
            "ebs.csi.aws.com, AWS Elastic Block Store (CSI)\n",
        ),
        ("gp3", "gp3 (ebs.csi.aws.com, "),
        ("azure disk", "maxShares"),
        ("longhorn", "Every node needs an NFS client"),
    ] {
        let output = run(&folder, &["capabilities", name]);
        assert_eq!(code(&output), 0, "{name}: {}", err(&output));
        assert!(out(&output).contains(part), "{name}: {}", out(&output));
        assert!(out(&output).contains("  Source      "), "{}", out(&output));
    }
    let json = run(&folder, &["capabilities", "--all", "--format", "json"]);
    let json: Value = serde_json::from_str(out(&json)).unwrap();
    assert!(json["products"].as_array().unwrap().len() > 240);
    let unknown = run(&folder, &["capabilities", "no such storage"]);
    assert_eq!(code(&unknown), 2);
    assert!(err(&unknown).contains("`multi-attach-guard capabilities --all`"));
    // With facts, a name is one of a class there.
    let one = run(&shop(), &["capabilities", "gp3", "--facts", "deploy"]);
    assert_eq!(out(&one).matches("Filesystem").count(), 1);
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&repository(&[]), &["completion", shell]);
        assert_eq!(code(&output), 0);
        assert!(out(&output).contains("capabilities"), "{shell}");
    }
}

/// What `check --format concise` prints is what the problem matcher reads.
#[test]
fn the_problem_matcher_reads_concise_lines() {
    let matcher = include_str!("../../problem-matcher.json");
    let matcher: Value = serde_json::from_str(matcher).unwrap();
    let pattern = &matcher["problemMatcher"][0]["pattern"][0];
    assert_eq!(
        pattern["regexp"],
        r"^(.+?):(\d+):(\d+): (error|warning)\[([a-z-]+)\] (.+)$"
    );
    let output = run(&shop(), &["check", "deploy", "--format", "concise"]);
    let line = out(&output).lines().next().unwrap();
    let (place, rest) = line.split_once(": ").unwrap();
    let (rule, message) = rest.split_once("] ").unwrap();
    assert_eq!(place, "deploy/web.yaml:7:3");
    assert_eq!(rule, "error[rolling-update-overlap");
    assert!(message.starts_with("Deployment web: "), "{line}");
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
