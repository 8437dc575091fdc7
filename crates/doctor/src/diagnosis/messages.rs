//! What Kubernetes and drivers say of volumes, in the words of Kubernetes 1.30 to 1.37.
//!
//! Whoever recognises a message does so by a [`Phrase`], so that each wording is written
//! once.

/// One statement in all of its wordings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phrase(pub(super) &'static [&'static str]);

impl Phrase {
    /// Whether the message makes the statement. Letters may be large or small.
    pub(super) fn is_in(self, message: &str) -> bool {
        let message = message.to_lowercase();
        self.0.iter().any(|words| message.contains(*words))
    }
}

/// A volume is in use on another node (`reportMultiAttachError` in
/// `pkg/controller/volume/attachdetach/reconciler`), until Kubernetes 1.36.
pub(super) const MULTI_ATTACH: Phrase = Phrase(&["multi-attach error for volume"]);

/// The same since 1.37.
pub(super) const WAITING_FOR_DETACH: Phrase = Phrase(&["waiting for detach for volume"]);

/// The same, where no pod is known to use it: "and can't be attached to another" until 1.36,
/// "waiting on detach before it can be attached to another node" since.
pub(super) const EXCLUSIVELY_ATTACHED: Phrase =
    Phrase(&["already exclusively attached to one node"]);

/// The pods that use it are of other namespaces (the same function).
pub(super) const IN_ANOTHER_NAMESPACE: Phrase = Phrase(&["in different namespaces"]);

/// A driver could not attach a volume, its attacher's silence included
/// (`GenerateAttachVolumeFunc` in `pkg/volume/util/operationexecutor`).
pub(super) const ATTACH_FAILED: Phrase = Phrase(&["attachvolume.attach failed"]);

/// A driver says that the disk is on another machine. DigitalOcean, Azure, Cinder, vSphere
/// and EBS, in this order.
pub(super) const ATTACHED_ELSEWHERE: Phrase = Phrase(&[
    "already attached",
    "attached to the wrong",
    "attached to another",
    "attached to a different",
    "still has volumeattachments",
    "dangling",
    "is still being used",
    "resource_in_use",
    "volumeinuse",
]);

/// A driver says that the node has as many volumes as it can attach. The first is the code
/// of the CSI specification.
pub(super) const LIMIT_REACHED: Phrase = Phrase(&[
    "resourceexhausted",
    "attachment limit",
    "attachmentlimitexceeded",
    "max number of volumes",
    "max number of attachments",
    "maximum number of volumes",
    "maximum number of data disks",
    "maximum_persistent_disks",
]);

/// A driver refuses to mount a volume twice on one node (`verifyMount` in OpenEBS' zfs-localpv
/// and lvm-localpv).
pub(super) const MOUNTED_ALREADY: Phrase = Phrase(&["device already mounted at"]);

/// The kubelet keeps a ReadWriteOncePod claim for another pod of its node
/// (`GenerateMountVolumeFunc` in `pkg/volume/util/operationexecutor`).
pub(super) const IN_USE_BY_ANOTHER_POD: Phrase =
    Phrase(&["readwriteoncepod access mode and is already in use"]);

/// The scheduler keeps a ReadWriteOncePod claim for another pod
/// (`ErrReasonReadWriteOncePodConflict` in `plugins/volumerestrictions`): since 1.34, and
/// until 1.33.
pub(super) const TAKEN_BY_ANOTHER_POD: Phrase = Phrase(&[
    "readwriteoncepod access mode already in-use",
    "persistentvolumeclaim with the same name and readwriteoncepod access mode",
]);

/// The scheduler finds no pod that this one may follow (`ErrReasonAffinityRulesNotMatch` in
/// `plugins/interpodaffinity`).
pub(super) const NO_POD_TO_FOLLOW: Phrase = Phrase(&["didn't match pod affinity rules"]);

/// The scheduler finds no node where the volume is (`ErrReasonNodeConflict` in
/// `plugins/volumebinding`, in its older wording and that of 1.36; `ErrReasonConflict` in
/// `plugins/volumezone`).
pub(super) const NODE_CONFLICT: Phrase = Phrase(&[
    "had volume node affinity conflict",
    "didn't match persistentvolume's node affinity",
    "had no available volume zone",
]);

/// The scheduler finds no node that can attach another volume
/// (`ErrReasonMaxVolumeCountExceeded` in `plugins/nodevolumelimits`).
pub(super) const LIMIT_OF_NODES: Phrase = Phrase(&["exceed max volume count"]);

/// The scheduler or a kubelet says that a claim has no volume (`PreFilter` and `PreBind` in
/// `plugins/volumebinding`, `getPVCExtractPV` in `pkg/kubelet/volumemanager/populator`).
pub(super) const NOT_BOUND: Phrase = Phrase(&[
    "unbound immediate persistentvolumeclaims",
    "didn't find available persistent volumes to bind",
    "binding volumes:",
    "pvc is not bound",
    "bound to non-existent pv",
]);

/// The scheduler finds no claim of that name (`PreFilter` in `plugins/volumebinding`).
pub(super) const NO_CLAIM: Phrase = Phrase(&["persistentvolumeclaim \""]);

/// A claim is being deleted (the same places).
pub(super) const CLAIM_ENDS: Phrase = Phrase(&["pvc is being deleted", "\" is being deleted"]);

/// The kubelet has waited two minutes for volumes
/// (`pkg/kubelet/volumemanager/volume_manager.go`).
pub(super) const KUBELET_WAITS: Phrase = Phrase(&["unable to attach or mount volumes"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_written_in_small_letters() {
        let lines = super::super::explain::LINES.iter().map(|it| it.phrase);
        let others = [
            ATTACH_FAILED,
            CLAIM_ENDS,
            IN_USE_BY_ANOTHER_POD,
            NO_CLAIM,
            NOT_BOUND,
        ];
        let all = lines.chain(others);
        for words in all.flat_map(|phrase| phrase.0) {
            assert_eq!(*words, words.to_lowercase());
        }
    }
}
