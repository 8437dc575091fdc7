//! `rules`, `capabilities` and what packages need.

use super::*;

/// Commands in the shop, where `_` stands for a blank in a word, with the exit code and what they
/// print, after `^` at the beginning.
const COMMANDS: [(&str, i32, &[&str]); 16] = [
    ("rules single-pod-volume", 0, &["^# single-pod-volume\n\n"]),
    ("rules impossible-name", 0, &["DNS-1123"]),
    (
        "rules nope",
        2,
        &["^There is no rule \"nope\". The rules are: "],
    ),
    (
        "capabilities --facts deploy",
        0,
        &[
            "gp3 (ebs.csi.aws.com, AWS Elastic Block Store (CSI))\n",
            "  Filesystem  ReadWriteOnce, ReadWriteOncePod\n",
            "ReadWriteMany: possible only when StorageClass parameter \"type\" is \"io2\"\n",
        ],
    ),
    (
        "capabilities --facts deploy --format json",
        0,
        &["\"class\": \"gp3\""],
    ),
    ("capabilities", 2, &[]),
    // Those of a product need no cluster.
    (
        "capabilities ebs",
        0,
        &["\"type\" is \"io2\"", "  Source      "],
    ),
    (
        "capabilities ebs.csi.aws.com",
        0,
        &["ebs.csi.aws.com, AWS Elastic Block Store (CSI)\n"],
    ),
    (
        "capabilities gp3",
        0,
        &["gp3 (ebs.csi.aws.com, ", "  Source      "],
    ),
    (
        "capabilities azure_disk",
        0,
        &["maxShares", "  Source      "],
    ),
    (
        "capabilities longhorn",
        0,
        &["Every node needs an NFS client", "  Source      "],
    ),
    (
        "capabilities no_such_storage",
        2,
        &["`multi-attach-guard capabilities --all`"],
    ),
    // With facts, a name is one of a class there.
    ("capabilities gp3 --facts deploy", 0, &["  Filesystem  "]),
    ("completion bash", 0, &["capabilities"]),
    ("completion zsh", 0, &["capabilities"]),
    ("completion fish", 0, &["capabilities"]),
];

#[test]
fn commands_say_what_is_asked_for() {
    let folder = shop();
    for (command, exit, parts) in COMMANDS {
        let words: Vec<String> = command.split(' ').map(|it| it.replace('_', " ")).collect();
        let output = run(
            &folder,
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        assert_eq!(code(&output), exit, "{command}: {output:?}");
        let (said, other) = if exit == 0 {
            (out(&output), "")
        } else {
            (err(&output), out(&output))
        };
        assert_eq!(other, "", "{command}");
        for part in parts {
            match part.strip_prefix('^') {
                Some(start) => begins(said, start),
                None => has(said, part),
            }
        }
    }
    let rules = run(&folder, &["rules"]);
    assert_eq!(out(&rules).lines().count(), engine::rules::RULES.len());
    let all = run(&folder, &["capabilities", "--all", "--format", "json"]);
    assert!(report(&all)["products"].as_array().unwrap().len() > 240);
    let one = run(&folder, &["capabilities", "gp3", "--facts", "deploy"]);
    assert_eq!(out(&one).matches("Filesystem").count(), 1);
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
