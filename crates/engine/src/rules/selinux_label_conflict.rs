//! Pods of different SELinux labels share a volume that a node mounts with one label.
//!
//! # Fires on
//!
//! Two workloads on one claim whose `seLinuxOptions` cannot be one label, or one of which has
//! `seLinuxChangePolicy: Recursive`. The CSIDriver object says `seLinuxMount: true`, the labels
//! are known (they have a level), and the pods may be on one node. The outcome is `stuck`, as a
//! warning: no object shows whether nodes enforce SELinux and whether the cluster mounts with
//! labels (Kubernetes 1.37 does by default).
//!
//! # Why
//!
//! With `-o context` a node mounts a volume with the label of the first pod. A pod with another
//! label, or with none because of `Recursive`, stays in `ContainerCreating` on that node:
//! `conflicting SELinux labels of volume`. So pods on one node, the cure for a ReadWriteOnce
//! volume, are the problem here, and ReadWriteMany does not help either.
//!
//! # Example
//!
//! ```yaml
//! apiVersion: batch/v1
//! kind: Job
//! metadata: {name: resize}
//! spec:
//!   template:
//!     spec:
//!       securityContext: {seLinuxOptions: {level: "s0:c30,c40"}}
//!       containers:
//!       - {name: resize, image: resize, volumeMounts: [{name: media, mountPath: /media}]}
//!       volumes:
//!       - name: media
//!         persistentVolumeClaim: {claimName: media}
//! ---
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata: {name: web}
//! spec:
//!   template:
//!     spec:
//!       securityContext: {seLinuxOptions: {level: "s0:c10,c20"}}
//!       containers:
//!       - {name: web, image: web, volumeMounts: [{name: media, mountPath: /media}]}
//!       volumes:
//!       - name: media
//!         persistentVolumeClaim: {claimName: media}
//! ---
//! apiVersion: v1
//! kind: PersistentVolumeClaim
//! metadata: {name: media}
//! spec: {accessModes: [ReadWriteMany], storageClassName: cephfs, volumeName: media}
//! ---
//! apiVersion: v1
//! kind: PersistentVolume
//! metadata: {name: media}
//! spec:
//!   accessModes: [ReadWriteMany]
//!   storageClassName: cephfs
//!   csi: {driver: cephfs.csi.ceph.com, volumeHandle: media}
//! ---
//! apiVersion: storage.k8s.io/v1
//! kind: CSIDriver
//! metadata: {name: cephfs.csi.ceph.com}
//! spec: {attachRequired: false, seLinuxMount: true}
//! ```
//!
//! # What to do
//!
//! Give both the same `seLinuxOptions`, or both
//! `securityContext: {seLinuxChangePolicy: Recursive}`.
//!
//! # Claims
//!
//! * Named by the pod template: read.
//! * A StatefulSet's own: read, if another workload uses them.
//!
//! # Silent on
//!
//! Pods without a label, which an admission plugin may add, and labels without a level, which the
//! container runtime chooses. Users that only one of the two names, and roles and types, which
//! files do not get. Several labels in one pod, and `Recursive` in both. Drivers without
//! `seLinuxMount`, and pods that are never on one node.

use super::{Certainty, Hazard, On, Outcome, Rule, messages};
use crate::analysis::{Analysis, UsedVolume, own_claims, users, volumes};
use crate::model::Text;
use crate::model::pod::{PodVolume, PodVolumeSource};
use crate::model::workload::Workload;

pub(super) const RULE: Rule = Rule {
    code: "selinux-label-conflict",
    at_fault: "the volume is mounted with one label at a time",
    on: &[On::Workload(judge)],
};

fn judge(analysis: &Analysis<'_>, found: &mut Vec<Hazard>) {
    let (workload, facts) = (analysis.workload, analysis.facts);
    let (namespace, template) = (&workload.metadata.namespace, &workload.template);
    let is_labelled =
        |volumes: &[PodVolume]| volumes.iter().any(|volume| volume.selinux_label.is_some());
    if workload.has_pods() && is_labelled(&template.volumes) {
        found.extend(analysis.volumes.iter().filter_map(|volume| conflict(analysis, volume)));
    }
    if workload.has_pods() && is_labelled(&template.own_volumes) {
        found.extend(own_claims::of(workload).filter_map(|own| {
            if users::others(analysis, &own.name).is_empty() {
                return None;
            }
            let volume = volumes::of_template(&own.name, own.template, namespace, facts);
            conflict(&analysis.with_only(volume.clone()), &volume)
        }));
    }
}

fn conflict(analysis: &Analysis<'_>, volume: &UsedVolume) -> Option<Hazard> {
    let claim = volume.claim.as_ref()?;
    let own = label(analysis.workload, claim)?;
    if !analysis.facts.view.csi_driver(&volume.driver).found()?.spec.se_linux_mount {
        return None;
    }
    let mut others = users::others(analysis, claim);
    if volume.is_exclusive() {
        // Another rule reports pods that may be on two nodes.
        let apart = users::apart(analysis, claim, volume);
        others.retain(|other| !apart.iter().any(|user| std::ptr::eq(*user, *other)));
    }
    let (other, theirs) = others.into_iter().find_map(|other| {
        let theirs = label(other, claim).filter(|theirs| conflicts(own, theirs))?;
        Some((other, theirs))
    })?;
    let (shared, driver, name) = (messages::quoted(volume), &volume.driver, other.shown());
    let noun = "the SELinux label ";
    let here = in_words(own, noun);
    let there = in_words(theirs, if own.is_empty() { noun } else { "" });
    Some(Hazard {
        certainty: Certainty::Assumed,
        field_path: format!("{}.securityContext", analysis.workload.kind.pod_spec_path()),
        volumes: vec![claim.clone()],
        what: format!(
            "{shared} is used with {here} here and {there} by {name}, and {driver} mounts with one label a node: where SELinux is enforced, the later pod on a node stays in ContainerCreating."
        ),
        advice: "Give both the same seLinuxOptions, or set securityContext.seLinuxChangePolicy to Recursive in both."
            .to_owned(),
        brief: format!("{shared} and {name} use one volume with different SELinux labels"),
        ..RULE.hazard(Outcome::Stuck)
    })
}

/// The label with which the workload's pods use the claim.
fn label<'a>(workload: &'a Workload, claim: &str) -> Option<&'a Text> {
    let (template, made) = (&workload.template, workload.template_of_claim(claim));
    let find = |volumes: &'a [PodVolume], wanted: &str| {
        volumes.iter().find(
            |volume| matches!(&volume.source, PodVolumeSource::Claim { name } if name == wanted),
        )
    };
    find(&template.volumes, claim)
        .or_else(|| find(&template.own_volumes, &made?.metadata.name))?
        .selinux_label
        .as_ref()
}

/// Whether no node treats them as one label: if only one of them has a user, the node's own user
/// may be the same.
fn conflicts(one: &str, other: &str) -> bool {
    let parts = |label| str::split_once(label, ':').unwrap_or_default();
    let ((user, level), (other_user, other_level)) = (parts(one), parts(other));
    level != other_level || (user != other_user && !user.is_empty() && !other_user.is_empty())
}

/// The label in words; `noun` stands before a real label.
fn in_words(label: &str, noun: &str) -> String {
    match label {
        "" => "no SELinux label (seLinuxChangePolicy: Recursive)".to_owned(),
        label => format!("{noun}{}", label.trim_start_matches(':')),
    }
}
