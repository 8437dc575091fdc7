//! What a line of an Event means, without a cluster: for someone with a ticket and no access.

use serde::Serialize;

use super::command::quoted;
use super::messages::{Message, catalog};
use engine::model::metadata::is_name;

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The words by which the line was recognised, as people search for them.
    pub searched: &'static str,
    /// Who writes the line, and in which Kubernetes where that differs.
    pub says: String,
    /// What has happened: sentences.
    pub meaning: &'static str,
    /// Commands that show more. Names in capitals are placeholders.
    pub look: Vec<String>,
    /// What ends it: sentences.
    pub fix: &'static str,
    /// The causes that it may come of, the likeliest first.
    pub causes: &'static [String],
    /// Where the words are in Kubernetes or in a driver.
    pub source: &'static str,
}

impl Message {
    /// What the line means; names are taken from `text`.
    fn explanation(&'static self, text: &str) -> Explanation {
        let look = self.look.iter().map(|it| filled(it.command(), text));
        let minors = self.minors.iter().flat_map(|it| [", ", it]);
        Explanation {
            searched: &self.searched,
            says: std::iter::once(self.says.as_str()).chain(minors).collect(),
            meaning: &self.meaning,
            look: look.collect(),
            fix: &self.out,
            causes: &self.causes,
            source: &self.source,
        }
    }
}

/// What a line of an Event, or of the scheduler, means; `None` where it is none that is known.
/// The words by which people search for such a line are enough.
#[must_use]
pub fn explain(text: &str) -> Option<Explanation> {
    let line = text.to_lowercase();
    let by_pattern = catalog().iter().find(|it| it.is_in(&line));
    let searched = || {
        let mut messages = catalog().iter();
        messages.find(|it| line.contains(&it.searched.to_lowercase()))
    };
    Some(by_pattern.or_else(searched)?.explanation(text))
}

/// Every explanation, without names.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    catalog().iter().map(|it| it.explanation(""))
}

/// What stands for a name in a command, what precedes it in a line, and what to write where
/// the line has none.
const NAMES: [(&str, &[&str], &str); 4] = [
    ("{volume}", &["for volume \""], "VOLUME"),
    ("{claim}", &["persistentvolumeclaim \""], "CLAIM"),
    ("{pod}", &[], "POD"),
    ("{namespace}", &[], "NAMESPACE"),
];

fn filled(command: &str, text: &str) -> String {
    let mut command = command.to_owned();
    for (place, openings, unknown) in NAMES {
        let mut found = openings.iter().filter_map(|opening| {
            let name = text.split_once(opening)?.1.split('"').next()?;
            is_name(name).then_some(name)
        });
        let name = found.next().map_or(unknown.into(), quoted);
        command = command.replace(place, &name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as Kubernetes 1.30 to 1.37 write them, and what each is known by.
    const SEEN: [(&str, &str); 30] = [
        (
            "Multi-Attach error for volume \"pv-data\" Volume is already used by pod(s) web-1",
            "Multi-Attach error for volume",
        ),
        (
            "Multi-Attach error for volume \"pv-data\" Volume is already exclusively attached to one node and can't be attached to another",
            "already exclusively attached to one node",
        ),
        (
            "Multi-Attach error for volume \"pv-data\" Volume is already used by 2 pod(s) in different namespaces",
            "pod(s) in different namespaces",
        ),
        (
            "Waiting for detach for volume \"pv-data\" Volume is already used by pod(s) web-1",
            "Waiting for detach for volume",
        ),
        (
            "Waiting for detach for volume \"pv-data\" Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node",
            "already exclusively attached to one node",
        ),
        (
            "Warning  FailedAttachVolume  3m  attachdetach-controller  AttachVolume.Attach failed for volume \"pv-data\" : timed out waiting for external-attacher of ebs.csi.aws.com CSI driver to attach volume vol-1",
            "timed out waiting for external-attacher",
        ),
        (
            "AttachVolume.Attach failed for volume \"pv-data\" : rpc error: code = Internal desc = VolumeInUse: vol-1 is already attached to an instance",
            "already attached to another node",
        ),
        (
            "AttachVolume.Attach failed for volume \"pv-data\" : rpc error: code = ResourceExhausted desc = limit",
            "attachment limit of the node",
        ),
        (
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            "volume node affinity conflict",
        ),
        (
            "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.",
            "volume node affinity conflict",
        ),
        (
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "unbound immediate PersistentVolumeClaims",
        ),
        (
            "0/3 nodes are available: 3 node(s) exceed max volume count.",
            "exceed max volume count",
        ),
        (
            "0/3 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.",
            "ReadWriteOncePod access mode already in-use",
        ),
        (
            "0/3 nodes are available: 3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod.",
            "ReadWriteOncePod access mode already in-use",
        ),
        (
            "MountVolume.SetUp failed for volume \"pv-data\" : rpc error: code = Internal desc = verifyMount: device already mounted at [/var/lib/kubelet/pods/0]",
            "device already mounted at",
        ),
        (
            "MountVolume.MountDevice failed for volume \"pv-data\" : rpc error: code = Internal desc = exit status 32",
            "MountVolume.SetUp failed for volume",
        ),
        (
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition",
            "timed out waiting for the condition",
        ),
        (
            "Unable to attach or mount volumes: unmounted volumes=[v]: error processing PVC shop/data: PVC is not bound",
            "PVC is not bound",
        ),
        (
            "persistentvolumeclaim \"data\" not found",
            "persistentvolumeclaim not found",
        ),
        (
            "persistentvolumeclaim \"data\" is being deleted",
            "PVC is being deleted",
        ),
        (
            "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) didn't match pod affinity rules.",
            "didn't match pod affinity rules",
        ),
        (
            "AttachVolume.Attach failed for volume \"pv-data\" : volume attachment is being deleted",
            "volume attachment is being deleted",
        ),
        (
            "AttachVolume.Attach failed for volume \"pv-data\" : CSINode n2 does not contain driver ebs.csi.aws.com",
            "CSINode does not contain driver",
        ),
        (
            "MountVolume.MountDevice failed for volume \"pv-data\" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name ebs.csi.aws.com not found in the list of registered CSI drivers",
            "not found in the list of registered CSI drivers",
        ),
        (
            "Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually by the system administrator.",
            "Waiting for a volume to be created",
        ),
        (
            "storageclass.storage.k8s.io \"fast\" not found",
            "storageclass.storage.k8s.io not found",
        ),
        (
            "persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"pv-data\"",
            "bound to non-existent persistentvolume",
        ),
        (
            "volume \"pv-data\" already bound to a different claim.",
            "already bound to a different claim",
        ),
        (
            "waiting for pod web-1 to be scheduled",
            "waiting for pod to be scheduled",
        ),
        (
            "unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: context deadline exceeded",
            "timed out waiting for the condition",
        ),
    ];

    #[test]
    fn the_words_that_people_search_for_are_explained() {
        for known in explanations() {
            assert!(explain(known.searched).is_some(), "{}", known.searched);
        }
    }

    #[test]
    fn each_wording_is_recognised() {
        for (line, searched) in SEEN {
            let found = explain(line).map(|it| it.searched);
            assert_eq!(found, Some(searched), "{line}");
        }
        for line in ["", "Back-off pulling image \"x\"", "2 Insufficient cpu"] {
            assert_eq!(explain(line), None, "{line}");
        }
    }

    #[test]
    fn names_from_the_line_are_filled_in() {
        let line = "AttachVolume.Attach failed for volume \"pv-data\" : already attached to n1";
        let look = explain(line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv pv-data".to_owned()),
            "{look:?}"
        );
        // What is no name of an object does not get into a command.
        let line = line.replace("pv-data", "$(reboot)");
        let look = explain(&line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv VOLUME".to_owned()),
            "{look:?}"
        );
    }
}
