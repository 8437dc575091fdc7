//! `--fix` and `--diff`.

use proptest::prelude::*;

use super::corpus::values;
use super::*;

/// Repairs everything; nothing must remain.
#[track_caller]
fn fix(folder: &TempDir) -> Output {
    let fixed = run(folder, &["check", "deploy", "--fix"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    fixed
}

#[test]
fn files_are_repaired_in_place_and_then_silent() {
    let folder = shop();
    let fixed = fix(&folder);
    let web = fs::read_to_string(folder.path().join("deploy/web.yaml")).unwrap();
    assert_eq!(web, DEPLOYMENT.replace("RollingUpdate", "Recreate"));
    let said = err(&fixed);
    begins(said, "deploy/web.yaml: repaired Deployment web with recreate.\n");
    assert!(!said.contains("could not be kept"), "{said}");
    assert_eq!(out(&fixed), "", "no patch is left to apply by hand");
    let left = fs::read_dir(folder.path().join("deploy")).unwrap();
    assert_eq!(left.count(), 3, "no other file is left behind");

    let again = run(&folder, &["check", "deploy"]);
    assert_eq!(code(&again), 0);
    begins(out(&again), "No findings. ");
}

/// The repair keeps permissions, owner, attributes and links. The repository may contain any file
/// in the place where the new text is written first. What a killed run left there is removed.
#[cfg(target_os = "linux")]
#[test]
fn a_repaired_file_keeps_all_but_its_text() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    let folder = shop();
    let beside = |name: &str| folder.path().join("deploy").join(name);
    let web = beside("web.yaml");
    fs::set_permissions(&web, fs::Permissions::from_mode(0o640)).unwrap();
    let link = beside("aaa.yaml");
    symlink("web.yaml", &link).unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let traps = ["web.yaml.multi-attach-guard", ".web.yaml.b1c2d3.multi-attach-guard"].map(beside);
    for trap in &traps {
        symlink(&victim, trap).unwrap();
    }
    let half = beside(".web.yaml.a1b2c3.multi-attach-guard");
    fs::write(&half, "half").unwrap();
    let has_attributes = setxattr(&web, "user.origin", b"ours", XattrFlags::empty()).is_ok();
    // Only the superuser may give files away.
    let is_given = chown(&web, Some(12345), Some(54321)).is_ok();
    let before = fs::metadata(&web).unwrap();

    let said = String::from_utf8(fix(&folder).stderr).unwrap();
    assert!(!said.contains("could not be kept"), "{said}");
    let repaired = DEPLOYMENT.replace("RollingUpdate", "Recreate");
    assert_eq!(fs::read_to_string(&web).unwrap(), repaired);
    let after = fs::metadata(&web).unwrap();
    assert_eq!(after.permissions().mode() & 0o777, 0o640);
    assert_eq!((before.uid(), before.gid()), (after.uid(), after.gid()));
    if is_given {
        assert_eq!(after.uid(), 12345);
    }
    if has_attributes {
        let mut value = [0; 8];
        let length = getxattr(&web, "user.origin", &mut value).unwrap();
        assert_eq!(&value[..length], b"ours");
    }
    for symlink in traps.iter().chain([&link]) {
        assert!(fs::symlink_metadata(symlink).unwrap().is_symlink());
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    assert!(!half.exists(), "the rest of a killed run is left behind");
}

/// Only one of the file's names would get the new text.
#[test]
fn a_file_with_several_names_is_left_alone() {
    let folder = shop();
    let web = folder.path().join("deploy/web.yaml");
    fs::hard_link(&web, folder.path().join("other")).unwrap();
    let fixed = run(&folder, &["check", "deploy", "--fix"]);
    assert_eq!(code(&fixed), 1);
    let why = "deploy/web.yaml: This file has 2 names (hard links), and a new file would take the place of one of them only, so it is left as it is; --diff shows the change.\n";
    assert!(err(&fixed).starts_with(why), "{}", err(&fixed));
    assert_eq!(fs::read_to_string(web).unwrap(), DEPLOYMENT);
}

#[test]
fn a_diff_changes_nothing() {
    let folder = shop();
    let output = run(&folder, &["check", "deploy", "--diff"]);
    assert_eq!(
        out(&output),
        "diff --git a/deploy/web.yaml b/deploy/web.yaml\n--- a/deploy/web.yaml\n+++ b/deploy/web.yaml\n@@ -5,7 +5,7 @@\n spec:\n   replicas: 1\n   strategy:   # we like it rolling\n-    type: RollingUpdate\n+    type: Recreate\n   selector:\n     matchLabels: {app: web}\n   template:\n"
    );
    assert_eq!(code(&output), 1);
    let web = fs::read_to_string(folder.path().join("deploy/web.yaml")).unwrap();
    assert_eq!(web, DEPLOYMENT);
}

/// git applies the diff of the other file, which it would not if one that is broken stood beside it.
#[test]
fn a_lone_carriage_return_is_named_in_place_of_a_broken_diff() {
    let odd = DEPLOYMENT.replace("it rolling", "it\r    # rolling");
    let windows = DEPLOYMENT.replace("name: web", "name: db").replace('\n', "\r\n");
    let folder = repository(&[
        ("facts.yaml", &format!("{CLASS}---\n{CLAIM}")),
        ("db.yaml", &windows),
        ("web.yaml", &odd),
    ]);
    let output = run(&folder, &["check", "--diff"]);
    has(
        err(&output),
        "web.yaml: a carriage return stands without a line feed, which a diff cannot show safely, so none is printed. --fix edits the file.\n",
    );
    let mut git = Command::new("git");
    git.args(["apply", "-"]).current_dir(folder.path());
    let applied = fed(&mut git, out(&output));
    assert!(applied.status.success(), "{}\n{}", err(&applied), out(&output));
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(text("db.yaml"), windows.replace("RollingUpdate", "Recreate"));
    run(&folder, &["check", "--fix"]);
    assert_eq!(text("web.yaml"), odd.replace("RollingUpdate", "Recreate"));
}

#[test]
fn what_was_rendered_gets_a_patch_for_kustomize() {
    let patch = "\
---
# A patch for Deployment web, rendered from shop/templates/web.yaml.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  strategy:
    type: Recreate
";
    let rendered = format!("---\n# Source: shop/templates/web.yaml\n{DEPLOYMENT}");
    let folder =
        repository(&[("facts.yaml", &format!("{CLASS}---\n{CLAIM}")), ("all.yaml", &rendered)]);
    let diff = run_with(&folder, &["check", "-", "facts.yaml", "--diff"], &rendered);
    assert_eq!(out(&diff), patch, "no diff that could not be applied");
    begins(
        err(&diff),
        "Deployment web is rendered from shop/templates/web.yaml: change the value that becomes the field,",
    );
    let file = run(&folder, &["check", "all.yaml", "facts.yaml", "--fix"]);
    assert_eq!(out(&file), patch, "a rendered file is not edited");
    let after = fs::read_to_string(folder.path().join("all.yaml")).unwrap();
    assert_eq!(after, rendered);
}

/// The objects of some documents, including the items of lists.
fn objects(documents: Vec<Value>) -> Vec<Value> {
    documents
        .into_iter()
        .flat_map(|mut document| match document["items"].take() {
            Value::Array(items) => objects(items),
            _ => vec![document],
        })
        .collect()
}

/// Removes the fields that remedies may write from the object.
fn without_remedy(mut object: Value) -> Value {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("strategy");
    }
    if let Some(pod) = object.pointer_mut("/spec/template/spec") {
        pod.as_object_mut().unwrap().shift_remove("affinity");
    }
    object
}

/// Repairs the files with each remedy. Afterwards nothing may be denied, each file must have the
/// same objects apart from the remedy, and a second run must change nothing.
fn repair_all(files: &[(String, String)]) {
    let facts = format!("{CLASS}---\n{}", CLAIM.replace("name: data", "name: other"));
    for remedy in ["recreate", "colocate", "zero-surge"] {
        let policy = format!("defaults: {{remedy: {remedy}}}\n");
        let mut all =
            vec![(".multi-attach-guard.yaml", policy.as_str()), ("in/facts.yaml", facts.as_str())];
        all.extend(borrowed(files));
        let folder = repository(&all);
        let fixed = run(&folder, &["check", "in", "--fix"]);
        assert_eq!(code(&fixed), 0, "{remedy}: {}", err(&fixed));
        assert_eq!(out(&fixed), "", "{remedy}: all was done in place");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();

        let mut repaired = 0;
        for (name, before) in files {
            let after = read(name);
            repaired += usize::from(*before != after);
            let [originals, results] = [before, &*after].map(|text| objects(values(text)));
            for (original, result) in originals.iter().zip(&results) {
                assert_eq!(
                    without_remedy(original.clone()),
                    without_remedy(result.clone()),
                    "{remedy}, {name}"
                );
            }
            assert_eq!(originals.len(), results.len(), "{remedy}, {name}");
        }
        assert!(repaired > 0, "{remedy}: nothing was at fault");

        let checked = run(&folder, &["check", "in"]);
        assert_eq!(code(&checked), 0, "{remedy}: {}", out(&checked));
        // Zero surge leaves a warning.
        if remedy != "zero-surge" {
            begins(out(&checked), "No findings.");
        }
        let texts = || files.iter().map(|(name, _)| read(name)).collect::<Vec<_>>();
        let once = texts();
        run(&folder, &["check", "in", "--fix"]);
        assert_eq!(texts(), once, "{remedy}: a second run changes nothing");
    }
}

/// A claim for the pods of [`Written`].
fn claim_of(name: &str) -> String {
    CLAIM.replace("name: data", &format!("name: {name}-data"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_way_of_writing_is_repaired(all in proptest::collection::vec(written::written(), 8)) {
        let files: Vec<(String, String)> = all
            .into_iter()
            .enumerate()
            .map(|(number, mut written)| {
                written.name = format!("web-{number}");
                let text = format!("{}---\n{}", claim_of(&written.name), written.text());
                (format!("in/{number}.yaml"), text)
            })
            .collect();
        repair_all(&files);
    }
}

#[test]
fn the_corpus_is_repaired() {
    let mut files = Vec::new();
    for (path, text) in corpus::files() {
        if let Some(name) = path.strip_prefix("tests/corpus/at-fault/") {
            files.push((format!("in/{name}"), text));
        }
    }
    assert_eq!(files.len(), 6, "a file of the corpus has gone or come");
    repair_all(&files);
}
