//! The commands on the pages of the documentation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::denials;
use crate::harness::output::has;
use crate::incident::{self, Incident};
use crate::printed::{assert_listed, commands};

/// The pages whose commands are run here. `tests/plain/readme.rs` runs those of the README,
/// `shared_storage` the whole of `migrate.md`, and `tutorial` that of `tutorial.md`.
const PAGES: [&str; 7] =
    ["always-there", "gitops", "install", "operations", "policy", "rules", "runbook"];

fn page(name: &str) -> String {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/docs"));
    let text = std::fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
    // Words of errors look like commands, and are none.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Words: ")).collect();
    lines.join("\n")
}

/// The command of a page that matches; if several match, they must be equal.
pub(crate) fn printed(name: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let mut meant = commands(&page(name));
    meant.retain(|command| is_meant(command));
    meant.dedup();
    match meant.as_slice() {
        [command] => command.clone(),
        other => panic!("docs/{name}.md prints {other:#?}"),
    }
}

pub(crate) fn every_command_is_listed() {
    let commands: Vec<String> = PAGES.iter().flat_map(|name| commands(&page(name))).collect();
    assert_listed(commands.iter().map(String::as_str), "docs/");
}

/// The titles of the error messages that the runbook explains.
pub(crate) fn explained_lines() -> Vec<String> {
    let runbook = page("runbook");
    let words = runbook
        .split_once("## By the words of the error\n")
        .unwrap()
        .1
        .split_once("\n## ")
        .unwrap()
        .0;
    words.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect()
}

/// The ways past a denial on the policy's page.
pub(crate) fn with_the_guard(incident: &Incident) {
    let own = format!("-n {}", incident.namespace);
    let in_its_namespace =
        |command: String| command.replace("-n shop", &own).replace("-n NAMESPACE", &own);
    denials::at_fault(incident);
    let annotate =
        in_its_namespace(printed("policy", |command| command.contains("annotate deployment")))
            .replace("DAY", "2999-12-31");
    let end_override = || {
        let keys =
            ["action-", "until-", "reason-"].map(|key| format!("multi-attach-guard.dev/{key}"));
        let remove = ["annotate", "deployment/web"];
        incident.kubectl(&[&remove[..], &keys.each_ref().map(String::as_str)].concat());
    };
    // Unchanged, the command has the example's reason, which the guard does not accept.
    incident.shell(&annotate);
    denials::at_fault(incident);
    end_override();
    incident.run(&annotate.replace("why it cannot wait", "the disk moves tonight"));
    denials::until_warned(incident);
    end_override();
    denials::at_fault(incident);
    let label = printed("policy", |command| command.contains("label namespace"));
    incident.run(&label.replace(" shop ", &format!(" {} ", incident.namespace)));
    denials::until_warned(incident);
    let look = printed("runbook", |command| command.starts_with("multi-attach-guard diagnose -n"));
    incident.look(&in_its_namespace(look));
    let explain = printed("runbook", |command| command.contains("--explain '"))
        .replace("LINE", "Multi-Attach error for volume \"pv-1\"");
    has(&incident.look(&explain), "rollout undo");
}

/// All steps of an installation, from a look at the cluster to the removal of the last object.
pub(crate) fn while_installing(incident: &Incident) {
    let run = |name: &str, beginning: &str, end: &str| {
        let command = printed(name, |line| line.starts_with(beginning));
        let output = incident.run(&command);
        incident.end(end);
        output
    };
    for beginning in [
        "audit --format html",
        "audit --format json",
        "audit --compare",
        "audit --config",
        "capabilities",
        "check --cluster manifests-of-your-own/",
    ] {
        run("install", &format!("multi-attach-guard {beginning}"), "it is shown");
    }
    for name in ["install", "runbook"] {
        incident.look(&printed(name, |command| {
            ["multi-attach-guard audit", "multi-attach-guard diagnose"].contains(&command)
        }));
    }

    run("install", "kubectl apply -k", "it is installed");
    is_installed(incident);
    for beginning in
        ["kubectl -n multi-attach-guard get pods", "kubectl get validatingwebhookconfiguration"]
    {
        run("operations", beginning, "it is shown");
    }
    run("install", "kubectl -n default get endpointslices", "it is shown");
    let smoke = run("install", "kubectl apply --dry-run=server", "the guard answers");
    for rule in ["leftover-rolling-update", "unresolved-claim"] {
        has(&smoke, &format!("Warning: {rule}"));
    }

    let policies = "multi-attach-guard policies |";
    run("always-there", policies, "the policies are there");
    assert_ne!(installed(incident)["validatingadmissionpolicybinding"], 0);
    let delete_bindings = "kubectl delete validatingadmissionpolicybinding -l";
    run("always-there", delete_bindings, "the policies hold no more");
    assert_eq!(installed(incident)["validatingadmissionpolicybinding"], 0);
    let standalone = "multi-attach-guard policies --standalone";
    run("always-there", standalone, "the standalone policy is there");
    assert_eq!(installed(incident)["validatingadmissionpolicybinding"], 1);
    let delete_standalone =
        "kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy";
    run("always-there", delete_standalone, "the standalone policy is gone");
    assert_eq!(installed(incident)["validatingadmissionpolicybinding"], 0);

    // Off is off: the policies would go on refusing objects.
    run("always-there", policies, "the policies are there");
    let delete_webhooks = "kubectl delete mutatingwebhookconfiguration";
    let off = "the API server asks no more";
    run("operations", delete_webhooks, off);
    for kind in ["validatingwebhookconfiguration", "validatingadmissionpolicybinding"] {
        assert_eq!(installed(incident)[kind], 0, "{kind}");
    }
    run("install", "kubectl apply -k", "it is installed");
    run("install", delete_webhooks, off);
    assert_eq!(installed(incident)["mutatingwebhookconfiguration"], 0);
    let last = |beginning: &str| {
        std::thread::scope(|scope| {
            scope.spawn(|| end_namespace(incident));
            run("install", beginning, "nothing is left");
        });
        nothing_is_left(incident);
    };
    last("kubectl delete clusterroles");

    run("install", "helm install", "it is installed");
    is_installed(incident);
    for command in ["helm upgrade", "helm rollback"] {
        run("install", command, "it is installed");
        is_installed(incident);
    }
    let last_but_one = "nothing but the namespace is left";
    run("install", "helm uninstall", last_but_one);
    nothing_is_left(incident);
    last("kubectl delete namespace");
}

fn is_installed(incident: &Incident) {
    let there = installed(incident);
    assert_eq!(there["validatingwebhookconfiguration"], 1, "{there:?}");
}

fn nothing_is_left(incident: &Incident) {
    let left = installed(incident);
    assert!(left.values().all(|count| *count == 0), "{left:?}");
}

fn end_namespace(incident: &Incident) {
    let kinds = "serviceaccounts,configmaps,secrets,services,deployments,roles,rolebindings,networkpolicies,poddisruptionbudgets";
    incident::end_namespace(incident.cluster.plane, "multi-attach-guard", kinds);
}

/// The number of the guard's objects of each kind.
fn installed(incident: &Incident) -> BTreeMap<&'static str, usize> {
    let kinds = [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
        "validatingadmissionpolicybinding",
        "clusterrole",
        "clusterrolebinding",
    ];
    let count = |kind| {
        let named = incident.kubectl(&["get", kind, "-o", "name"]);
        named.lines().filter(|name| name.contains("multi-attach-guard")).count()
    };
    kinds.map(|kind| (kind, count(kind))).into_iter().collect()
}
