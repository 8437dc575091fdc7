//! The page `docs/tutorial.md`: its blocks are run unchanged and in sequence in one shell, on a
//! control plane without a guard until the page installs it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::json;

use crate::harness::fake_nodes::ATTACHING_DRIVER;
use crate::harness::output::has;
use crate::harness::shorthand::{Claim, object};
use crate::harness::{self, ControlPlane, Lent, Needs, NodeSpec};
use crate::incident::end_namespace;
use crate::incident_cluster::{Mode, policy};
use crate::install;

const PAGE: &str = include_str!("../../docs/tutorial.md");

/// The line that the shell prints at the end of a block, before its exit code.
const ENDED: &str = "-- the block ended with ";

/// A reader's shell, which keeps its variables.
struct Reader {
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    blocks: std::vec::IntoIter<&'static str>,
}

impl Reader {
    fn new(plane: &ControlPlane, folder: &Path) -> Self {
        let mut shell = plane
            .printed("exec sh 2>&1")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let blocks: Vec<&str> =
            PAGE.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
        Self {
            input: shell.stdin.take().unwrap(),
            output: BufReader::new(shell.stdout.take().unwrap()),
            shell,
            blocks: blocks.into_iter(),
        }
    }

    /// Pastes the next block, which must begin with this text. Returns the exit code of its last
    /// command and its output.
    fn pastes(&mut self, beginning: &str) -> (i32, String) {
        let block = self.blocks.next().unwrap();
        assert!(block.starts_with(beginning), "{beginning:?} is not {block}");
        println!("{block}");
        writeln!(self.input, "{block}echo \"{ENDED}$?\"").unwrap();
        self.input.flush().unwrap();
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "the shell ended after\n{printed}");
            if let Some(code) = line.strip_prefix(ENDED) {
                println!("{printed}");
                return (code.trim().parse().unwrap(), printed);
            }
            printed += &line;
        }
    }

    fn succeeds(&mut self, beginning: &str) -> String {
        let (code, printed) = self.pastes(beginning);
        assert_eq!(code, 0, "{printed}");
        printed
    }
}

/// Makes a default class, with the volume that its driver would make.
fn furnish(plane: &ControlPlane) {
    let default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let with = json!({"metadata": {"annotations": default}, "provisioner": ATTACHING_DRIVER});
    let class = object(json!({"kind": "StorageClass", "name": "disks", "with": with}));
    let [volume, _] = Claim::exclusive().bound_in("tutorial", "data", ["disks", ATTACHING_DRIVER]);
    for object in [class, volume] {
        plane.apply("default", &object.to_string());
    }
}

/// `None` without a control plane.
pub(crate) fn as_printed() -> Option<()> {
    let lent = Lent::new(harness::start_control_plane(Needs::Controllers)?);
    let plane = lent.0;
    let nodes = plane.fake_nodes();
    nodes.add(&["a", "b"].map(|name| NodeSpec {
        name: name.to_owned(),
        cpus: 8,
        ..NodeSpec::default()
    }));
    furnish(plane);
    let folder = tempfile::tempdir().unwrap();
    let mut reader = Reader::new(plane, folder.path());

    // A finding without certainty only warns.
    let checked = reader.succeeds("cat > web.yaml");
    has(&checked, "warning[rolling-update-overlap]");
    has(&checked, "if the default class attaches");

    let created = reader.succeeds("kubectl create namespace tutorial");
    has(&created, "successfully rolled out");
    let (rollout_code, rollout) = reader.pastes("node=");
    assert_ne!(rollout_code, 0, "the rollout must hang: {rollout}");
    let (diagnosis_code, diagnosis) = reader.pastes("kubectl -n tutorial get events");
    assert_eq!(diagnosis_code, 1, "{diagnosis}");
    has(&diagnosis, "FailedAttachVolume");
    has(&diagnosis, "(rollout-overlap)");

    let patched = reader.succeeds("kubectl -n tutorial patch");
    has(&patched, "successfully rolled out");
    reader.succeeds("kubectl uncordon");

    let _guard = install::guard(plane, "tutorial", &policy(Mode::Deny), &[], |_| ());
    let (denial_code, denial) = reader.pastes("kubectl -n tutorial delete deploy web");
    assert_eq!(denial_code, 1, "{denial}");
    has(&denial, "persistentvolumeclaim/data unchanged");
    has(&denial, "Set spec.strategy to Recreate.");

    let diff = reader.succeeds("multi-attach-guard check --cluster --diff");
    has(&diff, "type: Recreate");
    let applied = reader.succeeds("kubectl apply -f web.yaml");
    has(&applied, "deployment.apps/web created");
    assert!(!applied.contains("Warning:"), "{applied}");
    has(&applied, "successfully rolled out");
    std::thread::scope(|scope| {
        let kinds =
            "deployments,replicasets,pods,persistentvolumeclaims,configmaps,serviceaccounts";
        scope.spawn(|| end_namespace(plane, "tutorial", kinds));
        reader.succeeds("kubectl delete namespace");
    });
    assert_eq!(reader.blocks.next(), None, "the page has more blocks");
    drop(reader.input);
    assert!(reader.shell.wait().unwrap().success());
    Some(())
}
