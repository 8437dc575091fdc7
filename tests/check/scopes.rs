//! Which objects speak for which: folders, facts, namespaces, patches and hooks.

use super::*;

/// A Deployment called `name` that uses the claim `data`.
fn deployment(name: &str) -> String {
    DEPLOYMENT.replace("name: web", &format!("name: {name}"))
}

/// A Deployment that is never at fault alone.
fn patient(name: &str) -> String {
    deployment(name).replace("RollingUpdate", "Recreate")
}

fn shared_claim() -> String {
    CLAIM
        .replace("ReadWriteOnce", "ReadWriteMany")
        .replace("gp3", "nfs")
}

/// The findings of a check of the files: `action rule object file`, in their order.
fn found(files: &[(&str, &str)], arguments: &[&str]) -> Vec<String> {
    let folder = repository(files);
    let mut all = vec!["check", "in", "--format", "json"];
    all.extend(arguments);
    let output = run(&folder, &all);
    findings(&output)
        .iter()
        .map(|it| {
            let (object, file) = (&it["object"], &it["file"]);
            format!("{} {} {} {file}", it["action"], it["rule"], object["name"]).replace('"', "")
        })
        .collect()
}

/// What the notices of a check of the files say.
fn noticed(files: &[(&str, &str)], arguments: &[&str]) -> Vec<String> {
    let folder = repository(files);
    let mut all = vec!["check", "in", "--format", "json"];
    all.extend(arguments);
    let report: Value = serde_json::from_str(out(&run(&folder, &all))).unwrap();
    let notices = report["notices"].as_array().cloned().unwrap_or_default();
    notices
        .iter()
        .map(|it| it["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_nearest_definition_counts() {
    let (web, other, shared) = (deployment("web"), patient("other"), shared_claim());
    let together = |claim: &str, name: &str| format!("{claim}---\n{}", patient(name));
    type Case<'c> = (&'c str, Vec<(&'c str, String)>, &'c [&'c str]);
    let overlap = "deny rolling-update-overlap web";
    let table: Vec<Case<'_>> = vec![
        (
            "two environments",
            vec![
                ("in/dev/web.yaml", web.clone()),
                ("in/dev/claim.yaml", CLAIM.to_owned()),
                ("in/prod/web.yaml", web.clone()),
                ("in/prod/claim.yaml", shared.clone()),
            ],
            &["deny rolling-update-overlap web in/dev/web.yaml"],
        ),
        (
            "a claim in a folder inside, and in one beside",
            vec![
                ("in/apps/web.yaml", web.clone()),
                ("in/apps/storage/claim.yaml", CLAIM.to_owned()),
                ("in/zoo/claim.yaml", shared.clone()),
            ],
            &["deny rolling-update-overlap web in/apps/web.yaml"],
        ),
        (
            "a claim beside, and another in a folder inside",
            vec![
                ("in/apps/web.yaml", web.clone()),
                ("in/apps/claim.yaml", CLAIM.to_owned()),
                ("in/apps/nfs/claim.yaml", shared.clone()),
            ],
            &["deny rolling-update-overlap web in/apps/web.yaml"],
        ),
        (
            "a claim above, and another in a folder beside",
            vec![
                ("in/apps/web/web.yaml", web.clone()),
                ("in/apps/claim.yaml", CLAIM.to_owned()),
                ("in/apps/nfs/claim.yaml", shared.clone()),
            ],
            &["deny rolling-update-overlap web in/apps/web/web.yaml"],
        ),
        (
            "the same definition twice",
            vec![
                ("in/base/web.yaml", web.clone()),
                ("in/dev/claim.yaml", CLAIM.to_owned()),
                ("in/prod/claim.yaml", CLAIM.to_owned()),
            ],
            &["deny rolling-update-overlap web in/base/web.yaml"],
        ),
        (
            "two examples in one folder",
            vec![
                ("in/one.yaml", together(CLAIM, "one")),
                ("in/two.yaml", together(&shared, "two")),
            ],
            &[],
        ),
        (
            "one claim, two folders",
            vec![
                ("in/a/other.yaml", other.clone()),
                ("in/b/web.yaml", patient("web")),
                ("in/storage/claim.yaml", CLAIM.to_owned()),
            ],
            &["deny workloads-share-volume web in/b/web.yaml"],
        ),
        (
            "a claim in a folder apart",
            vec![
                ("in/a/examples/other.yaml", other.clone()),
                ("in/b/examples/web.yaml", web.clone()),
                ("in/e2e/volumes/claim.yaml", CLAIM.to_owned()),
            ],
            &["warn rolling-update-overlap web in/b/examples/web.yaml"],
        ),
        (
            "each its own claim, two folders",
            vec![
                ("in/a/all.yaml", together(CLAIM, "other")),
                ("in/b/all.yaml", together(CLAIM, "web")),
            ],
            &[],
        ),
    ];
    for (name, files, expected) in table {
        let mut all = vec![("in/class.yaml", CLASS)];
        all.extend(files.iter().map(|(name, text)| (*name, text.as_str())));
        assert_eq!(found(&all, &[]), expected, "{name}");
    }
    let apart = [
        ("in/class.yaml", CLASS),
        ("in/b/examples/web.yaml", web.as_str()),
        ("in/e2e/volumes/claim.yaml", CLAIM),
    ];
    let output = run(&repository(&apart), &["check", "in", "--format", "json"]);
    assert_eq!(findings(&output)[0]["certainty"], "assumed");
    let ambiguous = [
        ("in/class.yaml", CLASS),
        ("in/base/web.yaml", web.as_str()),
        ("in/dev/claim.yaml", CLAIM),
        ("in/prod/claim.yaml", shared.as_str()),
    ];
    assert!(!found(&ambiguous, &[]).concat().contains(overlap));
    let folder = repository(&ambiguous);
    let output = run(&folder, &["check", "in", "--format", "json"]);
    let reported = findings(&output);
    assert_eq!(
        reported[0]["message"],
        "Deployment web: claim \"data\" is defined in in/dev/claim.yaml and in/prod/claim.yaml, which are equally near, so none of them is taken. Check one folder at a time, or add the claim to the facts about the cluster."
    );
    assert_eq!(reported.len(), 1);
}

/// Whatever the files are called, the one that comes and goes is at fault.
#[test]
fn a_shared_claim_is_the_fault_of_the_one_that_comes_and_goes() {
    let pod = |kind: &str| {
        let spec = "{volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}";
        let (version, spec) = match kind {
            "Job" => ("batch/v1", format!("{{template: {{spec: {spec}}}}}")),
            "CronJob" => (
                "batch/v1",
                format!(
                    "{{schedule: '0 3 * * *', jobTemplate: {{spec: {{template: {{spec: {spec}}}}}}}}}"
                ),
            ),
            _ => ("v1", spec.to_owned()),
        };
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: backup}}\nspec: {spec}\n")
    };
    let web = patient("web");
    for kind in ["Job", "CronJob", "Pod"] {
        let backup = pod(kind);
        for [jobs, apps, claims] in [
            ["in/a.yaml", "in/b.yaml", "in/c.yaml"],
            ["in/z.yaml", "in/b.yaml", "in/a.yaml"],
            ["in/a/x.yaml", "in/b/x.yaml", "in/x.yaml"],
            ["in/z/x.yaml", "in/b/x.yaml", "in/b/claim.yaml"],
            ["in/a/x.yaml", "in/b/x.yaml", "in/a/claim.yaml"],
        ] {
            let files = [
                ("in/class.yaml", CLASS),
                (jobs, backup.as_str()),
                (apps, &web),
                (claims, CLAIM),
            ];
            let mut expected = vec![format!("deny workloads-share-volume backup {jobs}")];
            // Who tries something out with a pod means no claim of a folder beside.
            expected.retain(|_| kind != "Pod" || claims != "in/b/claim.yaml");
            assert_eq!(found(&files, &[]), expected, "{kind} {apps} {claims}");
        }
    }
}

#[test]
fn what_nobody_names_speaks_for_its_own_folder_only() {
    const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: a}}";
    const VOLUME: &str = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {accessModes: [ReadWriteOnce, ReadWriteMany], capacity: {storage: 1Gi}, storageClassName: gp3, csi: {driver: efs.csi.aws.com, volumeHandle: v}}}";
    let base = [
        ("in/class.yaml", CLASS),
        ("in/app/web.yaml", DEPLOYMENT),
        ("in/app/claim.yaml", CLAIM),
    ];
    let overlap = "deny rolling-update-overlap web in/app/web.yaml";
    for (name, file, text, arguments, expected) in [
        ("a node", "in/app/node.yaml", NODE, &[][..], &[overlap][..]),
        (
            "a node of the facts",
            "node.yaml",
            NODE,
            &["--facts", "node.yaml"],
            &[],
        ),
        (
            "a free volume beside",
            "in/app/volume.yaml",
            VOLUME,
            &[],
            &[],
        ),
        ("a free volume above", "in/volume.yaml", VOLUME, &[], &[]),
        (
            "a free volume elsewhere",
            "in/test/volume.yaml",
            VOLUME,
            &[],
            &[overlap],
        ),
    ] {
        let files: Vec<_> = base.iter().copied().chain([(file, text)]).collect();
        assert_eq!(found(&files, arguments), expected, "{name}");
    }
}

#[test]
fn a_wait_that_somebody_chose_is_a_notice() {
    let web = DEPLOYMENT.replace(
        "    type: RollingUpdate\n",
        "    type: RollingUpdate\n    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}\n",
    );
    let files = [
        ("in/web.yaml", web.as_str()),
        ("in/claim.yaml", CLAIM),
        ("in/class.yaml", CLASS),
    ];
    let [reported] = &noticed(&files, &[])[..] else {
        panic!("one notice");
    };
    let sentence = "With maxSurge: 0, as chosen here: claim \"data\" is not bound yet";
    assert!(reported.starts_with(sentence), "{reported}");
}

/// A volume or a default class of a folder inside says nothing where a nearer one of its
/// name, or a nearer default class, is.
#[test]
fn the_nearest_volume_and_default_class_count() {
    let claim = CLAIM.replace("gp3", "manual");
    let volume = |class: &str, modes: &str, source: &str| {
        format!(
            "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: v}}, spec: {{accessModes: [{modes}], capacity: {{storage: 1Gi}}, storageClassName: {class}, {source}}}}}"
        )
    };
    let (host_path, disk) = (
        "hostPath: {path: /d}",
        "csi: {driver: ebs.csi.aws.com, volumeHandle: v}",
    );
    let ours = volume("manual", "ReadWriteOnce", host_path);
    let attached = volume("manual", "ReadWriteOnce", disk);
    let theirs = volume("manual", "ReadWriteOnce, ReadWriteMany", disk);
    let overlap = &["deny rolling-update-overlap web in/web.yaml"][..];
    for inside in ["in/aws/v.yaml", "in/zoo/v.yaml"] {
        let volumes = |near: &str, far: &str| {
            let files = [
                ("in/web.yaml", DEPLOYMENT),
                ("in/claim.yaml", &claim),
                ("in/v.yaml", near),
                (inside, far),
            ];
            found(&files, &[])
        };
        assert!(volumes(&ours, &theirs).is_empty(), "{inside}");
        assert!(volumes(&ours, &attached).is_empty(), "{inside}");
        assert_eq!(volumes(&attached, &theirs), overlap, "{inside}");
    }

    let unclassed = CLAIM.replace("  storageClassName: gp3\n", "");
    let class = |name: &str, provisioner: &str| {
        format!(
            "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: {name}, annotations: {{storageclass.kubernetes.io/is-default-class: 'true'}}}}, provisioner: {provisioner}}}"
        )
    };
    let [nfs, ebs] = ["nfs.csi.k8s.io", "ebs.csi.aws.com"];
    let base = [
        ("in/web.yaml", DEPLOYMENT),
        ("in/claim.yaml", unclassed.as_str()),
    ];
    let with = |more: &[(&'static str, String)]| {
        let mut files: Vec<(&str, &str)> = base.to_vec();
        files.extend(more.iter().map(|(name, text)| (*name, text.as_str())));
        (found(&files, &[]), noticed(&files, &[]))
    };
    for inside in ["in/aws/class.yaml", "in/zoo/class.yaml"] {
        for name in ["std", "other"] {
            let near = |near, far| {
                let (found, _) = with(&[
                    ("in/class.yaml", class("std", near)),
                    (inside, class(name, far)),
                ]);
                found
            };
            assert!(near(nfs, ebs).is_empty(), "{inside} {name}");
            assert_eq!(near(ebs, nfs), overlap, "{inside} {name}");
        }
    }
    for [aws, bare] in [
        ["in/aws/c.yaml", "in/bare/c.yaml"],
        ["in/zoo/c.yaml", "in/bare/c.yaml"],
    ] {
        let (found, noticed) = with(&[(aws, class("std", ebs)), (bare, class("std", nfs))]);
        assert_eq!(found, ["warn rolling-update-overlap web in/web.yaml"]);
        let files = [aws.min(bare), aws.max(bare)].join(" and ");
        assert_eq!(
            noticed,
            [format!(
                "Different StorageClasses are marked as the default one in {files}, so none of them is taken. Add the right one to the facts about the cluster."
            )]
        );
    }
}

/// The volume of a folder beside is not nearer than the one above: it says nothing.
#[test]
fn a_volume_of_a_folder_beside_hides_none() {
    let claim = CLAIM.replace("gp3", "manual");
    let volume = |source: &str| {
        format!(
            "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: v}}, spec: {{accessModes: [ReadWriteOnce], capacity: {{storage: 1Gi}}, storageClassName: manual, {source}}}}}"
        )
    };
    let files = [
        ("in/v.yaml", &*volume("hostPath: {path: /d}")),
        ("in/b/c/web.yaml", DEPLOYMENT),
        ("in/b/c/claim.yaml", &claim),
        (
            "in/b/d/v.yaml",
            &volume("csi: {driver: ebs.csi.aws.com, volumeHandle: v}"),
        ),
    ];
    assert_eq!(found(&files, &[]), [""; 0]);
}

/// What the facts know, or a volume that the claim is bound to, settles it.
#[test]
fn classes_that_differ_matter_only_where_one_of_them_decides() {
    let nfs = CLASS.replace("ebs.csi.aws.com", "nfs.csi.k8s.io");
    let class = |text: &str, name: &str| text.replace("{name: gp3}", &format!("{{name: {name}}}"));
    let with = |name: &str, claim: &str, facts: &[&str], far: &str| {
        let (ebs, far) = (class(CLASS, name), class(far, name));
        let files = [
            ("in/web.yaml", DEPLOYMENT),
            ("in/claim.yaml", &claim.replace("gp3", name)),
            ("in/a/class.yaml", &ebs),
            ("in/b/class.yaml", &far),
            ("facts.yaml", &ebs),
        ];
        found(&files, facts)
    };
    let (denied, warned) = (
        ["deny rolling-update-overlap web in/web.yaml"],
        ["warn rolling-update-overlap web in/web.yaml"],
    );
    let facts = ["--facts", "facts.yaml"];
    assert_eq!(with("std", CLAIM, &[], &nfs), warned);
    assert_eq!(with("std", CLAIM, &facts, &nfs), denied);
    assert_eq!(
        with("gp3", CLAIM, &[], &nfs),
        denied,
        "a name that the driver gives"
    );
    let local = CLASS.replace("ebs.csi.aws.com", "rancher.io/local-path");
    let other = CLASS.replace("ebs.csi.aws.com", "k8s.io/minikube-hostpath");
    let files = [
        ("in/web.yaml", DEPLOYMENT),
        ("in/claim.yaml", CLAIM),
        ("in/a/class.yaml", &local),
        ("in/b/class.yaml", &other),
    ];
    assert_eq!(found(&files, &[]), warned, "the name means none of them");

    let default = "{name: gp3, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}";
    let named = |text: &str, name: &str| {
        text.replace("{name: gp3}", default)
            .replace("name: gp3", &format!("name: {name}"))
    };
    let unclassed = CLAIM.replace("  storageClassName: gp3\n", "");
    for names in [["a", "b"], ["b", "a"]] {
        let classes = format!("{}---\n{}", named(CLASS, names[0]), named(&nfs, names[1]));
        let files = [
            ("in/web.yaml", DEPLOYMENT),
            ("in/claim.yaml", unclassed.as_str()),
            ("in/class.yaml", &classes),
        ];
        assert_eq!(found(&files, &[]), warned, "two default classes in a file");
    }
}

#[test]
fn default_classes_that_differ_by_name_alone_agree() {
    let unclassed = CLAIM.replace("  storageClassName: gp3\n", "");
    let class = |name: &str| {
        let default =
            "metadata: {annotations: {storageclass.kubernetes.io/is-default-class: 'true'}, name: ";
        CLASS.replace("metadata: {name: gp3", &format!("{default}{name}"))
    };
    let files = [
        ("in/web.yaml", DEPLOYMENT),
        ("in/claim.yaml", &unclassed),
        ("in/a/class.yaml", &class("one")),
        ("in/b/class.yaml", &class("two")),
    ];
    assert_eq!(
        found(&files, &[]),
        ["deny rolling-update-overlap web in/web.yaml"]
    );
}

/// As every chart does, a claim is rendered again without its volume.
#[test]
fn what_the_facts_know_of_a_claim_stays_known() {
    let bound = format!("{CLAIM}  volumeName: v\nstatus: {{accessModes: [ReadWriteMany]}}\n");
    let volume = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {accessModes: [ReadWriteMany], storageClassName: gp3, csi: {driver: efs.csi.aws.com, volumeHandle: v}, claimRef: {namespace: default, name: data}}}";
    let facts = format!("{CLASS}---\n{bound}---\n{volume}\n---\n{}", patient("web"));
    let files = [
        ("in/web.yaml", DEPLOYMENT),
        ("in/claim.yaml", CLAIM),
        ("facts.yaml", &facts),
    ];
    assert!(found(&files, &["--facts", "facts.yaml"]).is_empty());
    let unbound = facts.replace(
        "  volumeName: v\nstatus: {accessModes: [ReadWriteMany]}\n",
        "",
    );
    let unbound = unbound.replace("kind: PersistentVolume,", "kind: ConfigMap,");
    let files = [files[0], files[1], ("facts.yaml", unbound.as_str())];
    assert_eq!(
        found(&files, &["--facts", "facts.yaml"]),
        ["deny rolling-update-overlap web in/web.yaml"],
        "the Deployment counts once, as the file has it"
    );
}

#[test]
fn objects_without_a_namespace_find_each_other() {
    let named = DEPLOYMENT.replace("name: web\n", "name: web\n  namespace: shop\n");
    let named = named.as_str();
    let claim = CLAIM.replace("name: data", "name: data, namespace: shop");
    let other = patient("other").replace("name: other\n", "name: other\n  namespace: bank\n");
    let overlap = &["deny rolling-update-overlap web in/web.yaml"][..];
    let kustomization = "namespace: shop\nresources: [web.yaml, claim.yaml]\n";
    type Case<'c> = (&'c str, Vec<(&'c str, &'c str)>, &'c [&'c str], bool);
    let table: Vec<Case<'_>> = vec![
        (
            "the only one",
            vec![("in/web.yaml", named), ("in/claim.yaml", CLAIM)],
            &[],
            true,
        ),
        (
            "one of two",
            vec![
                ("in/web.yaml", named),
                ("in/claim.yaml", CLAIM),
                ("in/other.yaml", &other),
            ],
            &[],
            false,
        ),
        (
            "the one that was requested",
            vec![
                ("in/web.yaml", named),
                ("in/claim.yaml", CLAIM),
                ("in/other.yaml", &other),
            ],
            &["--namespace", "shop"],
            true,
        ),
        (
            "that of the kustomization beside",
            vec![
                ("in/web.yaml", DEPLOYMENT),
                ("in/claim.yaml", &claim),
                ("in/other.yaml", &other),
                ("in/kustomization.yaml", kustomization),
            ],
            &["-n", "bank"],
            true,
        ),
    ];
    for (name, mut files, arguments, overlaps) in table {
        files.push(("in/class.yaml", CLASS));
        let found = found(&files, arguments);
        assert_eq!(found == overlap, overlaps, "{name}: {found:?}");
    }
    let facts = format!("{CLASS}---\n{claim}");
    let files = [("in/web.yaml", DEPLOYMENT), ("facts.yaml", facts.as_str())];
    assert_eq!(
        noticed(&files, &["--facts", "facts.yaml"]),
        [
            "There is no claim \"data\" in namespace default, but the facts have one in shop; if that is the one, pass --namespace shop."
        ]
    );
    assert_eq!(
        found(&files, &["--facts", "facts.yaml", "-n", "shop"]),
        overlap
    );
}

#[test]
fn patches_are_neither_judged_nor_facts_nor_edited() {
    let patch = DEPLOYMENT.replace("  selector:\n    matchLabels: {app: web}\n", "");
    let kustomization =
        "resources: [claim.yaml]\npatches: [{path: size.yaml}]\ncomponents: [parts]\n";
    let files = [
        ("in/class.yaml", CLASS),
        ("in/claim.yaml", CLAIM),
        ("in/kustomization.yaml", kustomization),
        ("in/part.yaml", &patch),
        ("in/size.yaml", DEPLOYMENT),
        (
            "in/parts/kustomization.yaml",
            "kind: Component\nresources: [web.yaml]\n",
        ),
        ("in/parts/web.yaml", DEPLOYMENT),
    ];
    let folder = repository(&files);
    let output = run(&folder, &["check", "in", "--fix", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let report: Value = serde_json::from_str(out(&output)).unwrap();
    assert_eq!(report["summary"]["fragments"], 3);
    for (name, text) in files {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), text);
    }
}

#[test]
fn hooks_that_never_run_beside_the_release_share_nothing() {
    let hook = |hook: &str| {
        patient("hook").replace(
            "metadata:\n  name: hook\n",
            &format!("metadata:\n  name: hook\n  annotations: {{helm.sh/hook: {hook}}}\n"),
        )
    };
    for (kind, findings, notices) in [
        ("pre-install", 0, 0),
        ("post-delete", 0, 0),
        ("post-install", 1, 0),
        ("test", 0, 1),
    ] {
        let text = format!("{CLAIM}---\n{}---\n{}", patient("app"), hook(kind));
        let files = [("in/class.yaml", CLASS), ("in/all.yaml", text.as_str())];
        assert_eq!(found(&files, &[]).len(), findings, "{kind}");
        let reported = noticed(&files, &[]);
        assert_eq!(reported.len(), notices, "{kind}: {reported:?}");
    }
}

#[test]
fn what_the_author_chose_is_no_warning() {
    let chosen = DEPLOYMENT.replace(
        "type: RollingUpdate",
        "rollingUpdate: {maxSurge: 0, maxUnavailable: 1}",
    );
    let files = [
        ("in/class.yaml", CLASS),
        ("in/claim.yaml", CLAIM),
        ("in/web.yaml", chosen.as_str()),
    ];
    assert!(found(&files, &[]).is_empty());
    assert_eq!(noticed(&files, &[]).len(), 1);
    let folder = repository(&files);
    let fixed = run(&folder, &["check", "in", "--fix", "--fail-on", "warn"]);
    assert_eq!(code(&fixed), 0, "{}", err(&fixed));
    let web = fs::read_to_string(folder.path().join("in/web.yaml")).unwrap();
    assert_eq!(web, chosen);
}

/// Several pods on one node are a decision.
#[test]
fn several_pods_are_kept_together_only_when_asked_for() {
    let several = DEPLOYMENT.replace("replicas: 1", "replicas: 3");
    let files = [
        ("in/class.yaml", CLASS),
        ("in/claim.yaml", CLAIM),
        ("in/web.yaml", several.as_str()),
    ];
    for (arguments, edited) in [(&[][..], false), (&["--remedy", "colocate"], true)] {
        let folder = repository(&files);
        let mut all = vec!["check", "in", "--fix"];
        all.extend(arguments);
        let fixed = run(&folder, &all);
        assert_eq!(code(&fixed), i32::from(!edited), "{}", err(&fixed));
        let web = fs::read_to_string(folder.path().join("in/web.yaml")).unwrap();
        assert_eq!(web != several, edited);
    }
    let unknown = run(&repository(&files), &["check", "in", "--remedy", "magic"]);
    assert_eq!(code(&unknown), 2);
    assert!(err(&unknown).contains("there is no such remedy; there are auto, recreate, "));
}

#[test]
fn a_bare_pod_takes_no_claim_of_a_folder_beside_its_own() {
    let pod = "\
apiVersion: v1
kind: Pod
metadata: {name: shell}
spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
";
    let app = format!("{CLAIM}---\n{}", patient("web"));
    let with_pod_in = |folder: &str| {
        let place = format!("in/{folder}/pod.yaml");
        found(&[("in/app/all.yaml", &app), (&place, pod)], &[])
    };
    let shared = ["deny workloads-share-volume shell in/app/pod.yaml"];
    assert_eq!(with_pod_in("app"), shared);
    assert!(with_pod_in("debug").is_empty());
}

#[test]
fn the_claim_of_a_pods_ephemeral_volume_and_the_second_volume_of_a_disk_are_found_in_other_files() {
    let builder = "\
apiVersion: v1
kind: Pod
metadata: {name: builder}
spec: {volumes: [{name: sources, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: gp3}}}}]}
";
    let reader = patient("reader").replace("claimName: data", "claimName: builder-sources");
    let files = [("in/pod.yaml", builder), ("in/reader.yaml", &reader)];
    let expected = ["deny workloads-share-volume builder in/pod.yaml"];
    assert_eq!(found(&files, &[]), expected);

    let disk = |name: &str| {
        format!(
            "\
apiVersion: v1
kind: PersistentVolume
metadata: {{name: pv-{name}}}
spec: {{accessModes: [ReadWriteOnce], capacity: {{storage: 1Gi}}, claimRef: {{namespace: default, name: {name}}}, csi: {{driver: ebs.csi.aws.com, volumeHandle: vol-1}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], volumeName: pv-{name}, resources: {{requests: {{storage: 1Gi}}}}}}
---
{}",
            patient(name).replace("claimName: data", &format!("claimName: {name}"))
        )
    };
    let files = [("in/a.yaml", disk("a")), ("in/b.yaml", disk("b"))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    assert_eq!(
        found(&files, &[]),
        ["deny workloads-share-volume b in/b.yaml"]
    );
}
