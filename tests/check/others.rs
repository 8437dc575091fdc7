//! `rules`, `capabilities` and the needs of packages.

use serde::Deserialize;

use super::*;

/// A case of `cases/commands.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    command: String,
    #[serde(default)]
    exit: i32,
    #[serde(default)]
    prints: Vec<String>,
}

#[test]
fn commands_say_what_is_asked_for() {
    let folder = shop();
    let cases: Vec<Case> = serde_saphyr::from_str(include_str!("cases/commands.yaml")).unwrap();
    for case in cases {
        let command = &case.command;
        let words: Vec<String> = command.split(' ').map(|word| word.replace('_', " ")).collect();
        let output = run(&folder, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(code(&output), case.exit, "{command}: {output:?}");
        let (said, other) =
            if case.exit == 0 { (out(&output), "") } else { (err(&output), out(&output)) };
        assert_eq!(other, "", "{command}");
        for part in &case.prints {
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
    for name in [&["gp3", "--facts", "deploy"][..], &["managed-csi"]] {
        let one = run(&folder, &[&["capabilities"], name].concat());
        assert_eq!(out(&one).matches("Filesystem").count(), 1, "{name:?}");
    }
    // A condition of files and blocks is said once.
    let rwo = run(&folder, &["capabilities", "standard-rwo"]);
    assert_eq!(out(&rwo).matches("ReadOnlyMany: ").count(), 1, "{}", out(&rwo));
}

#[test]
fn what_is_piped_into_a_check_of_files_is_named() {
    let empty = repository(&[]);
    let tip = "Standard input was not read: `multi-attach-guard check -` reads it.";
    let output = run_with(&empty, &["check"], DEPLOYMENT);
    assert!(err(&output).ends_with(&format!("{tip}\n")), "{}", err(&output));
    for arguments in [&["check", "."][..], &["check", "-f", "-"]] {
        let named = run_with(&empty, arguments, DEPLOYMENT);
        assert!(!err(&named).contains(tip), "{}", err(&named));
    }
    let found = run(&shop(), &["check"]);
    assert!(!err(&found).contains(tip), "{}", err(&found));
}

#[test]
fn the_files_of_git_are_not_edited() {
    let text = [CLASS, CLAIM, DEPLOYMENT].join("---\n");
    let folder = repository(&[(".git/hooks/web.yaml", &*text), ("web.yaml", &*text)]);
    for path in [".git/hooks/web.yaml", "web.yaml"] {
        let output = run(&folder, &["check", "--fix", path]);
        let after = fs::read_to_string(folder.path().join(path)).unwrap();
        assert_eq!(after == text, path.starts_with(".git"), "{path}: {output:?}");
    }
}

#[test]
fn files_are_named_as_in_kubectl() {
    let folder = shop();
    let named = run(&folder, &["check", "--format", "json", "-f", "deploy"]);
    let expected = run(&folder, &["check", "--format", "json", "deploy"]);
    assert_eq!((code(&named), out(&named)), (code(&expected), out(&expected)));
    let both = run(&folder, &["check", "--format", "json", "deploy", "-f", "deploy/web.yaml"]);
    assert_eq!(out(&both), out(&expected));
}

/// The problem matcher reads the output of `check --format concise`.
#[test]
fn the_problem_matcher_reads_concise_lines() {
    let matcher: Value = serde_json::from_str(include_str!("../../problem-matcher.json")).unwrap();
    let pattern = &matcher["problemMatcher"][0]["pattern"][0];
    assert_eq!(pattern["regexp"], r"^(.+?):(\d+):(\d+): (error|warning)\[([a-z-]+)\] (.+)$");
    let output = run(&shop(), &["check", "deploy", "--format", "concise"]);
    let line = out(&output).lines().next().unwrap();
    let (place, rest) = line.split_once(": ").unwrap();
    let (rule, message) = rest.split_once("] ").unwrap();
    assert_eq!(place, "deploy/web.yaml:8:5");
    assert_eq!(rule, "error[rolling-update-overlap");
    assert!(message.starts_with("Deployment web: "), "{line}");
}

#[test]
fn packages_get_completions_and_manual_pages() {
    let folder = shop();
    assert_eq!(code(&run(&folder, &["dist", "dist"])), 0);
    for (file, part) in [
        ("completions/multi-attach-guard.bash", "complete -o nospace"),
        ("completions/_multi-attach-guard", "#compdef multi-attach-guard"),
        ("man/multi-attach-guard-check.1", "fail\\-on"),
        ("man/multi-attach-guard-snapshot.1", "REDACTED"),
    ] {
        let text = fs::read_to_string(folder.path().join("dist").join(file)).unwrap();
        assert!(text.contains(part), "{file}");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .env("PATH", format!("{}:{path}", program.display()))
        .args([
            "-euc",
            r#"source dist/completions/multi-attach-guard.bash
            function=$(complete -p multi-attach-guard | sed 's/.* -F \([^ ]*\) .*/\1/')
            COMP_WORDS=(multi-attach-guard check --fail-on d) COMP_CWORD=3 COMP_TYPE=9
            "$function" multi-attach-guard d --fail-on
            echo "${COMPREPLY[@]}""#,
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(out(&output), "deny\n", "{}", err(&output));
}
