//! Which class can give the wanted mode, and how sure that is.

use super::MigrationInput;
use super::error::MigrationBlocked;
use super::metadata_preservation::PreservedMetadata;
use super::subject::Subject;
use super::{CopyBy, Wanted};
use engine::model::Text;
use engine::model::access_mode::{AccessModes, VolumeMode};
use engine::model::storage_class::{NO_PROVISIONER, StorageClass};
use engine::storage::{Capability, ClaimFacts, ClassModes, NodeLocal, Support};

/// The class of the new claim.
pub(super) struct Target<'a> {
    pub(super) class: Text,
    /// The driver; empty where the class could not be read.
    pub(super) driver: Text,
    /// Whether its volumes are made only when a pod is placed.
    pub(super) binds_late: bool,
    /// How sure it is that it gives the mode, in words.
    pub(super) sure: String,
    /// Whether the class may do, and nothing proves it.
    pub(super) unproven: bool,
    /// What its volumes keep of files.
    pub(super) kept: &'static PreservedMetadata,
    /// Other classes that would do.
    pub(super) others: Vec<&'a StorageClass>,
}

/// Shared storage that goes with a driver for disks, by the end of its name.
const COMPANIONS: [(&str, &str); 7] = [
    ("ebs.csi.aws.com", "Amazon EFS (efs.csi.aws.com)"),
    ("kubernetes.io/aws-ebs", "Amazon EFS (efs.csi.aws.com)"),
    (
        "pd.csi.storage.gke.io",
        "Filestore (filestore.csi.storage.gke.io)",
    ),
    ("disk.csi.azure.com", "Azure Files (file.csi.azure.com)"),
    (
        "rbd.csi.ceph.com",
        "CephFS of the same Ceph cluster (cephfs.csi.ceph.com)",
    ),
    (
        "cinder.csi.openstack.org",
        "Manila (manila.csi.openstack.org)",
    ),
    (
        "csi.vsphere.vmware.com",
        "vSAN File Services (the same driver)",
    ),
];

/// A class of the cluster, judged.
struct Candidate<'a> {
    class: &'a StorageClass,
    capability: Capability<'a>,
    support: Support,
}

impl<'a> Candidate<'a> {
    fn of(
        class: &'a StorageClass,
        mode: VolumeMode,
        wanted: Wanted<'_>,
        facts: MigrationInput<'a>,
    ) -> Self {
        let stated = ClassModes::from_annotations(|key| class.metadata.annotations.get(key));
        let claim = ClaimFacts {
            has_data_source: wanted.copy == CopyBy::Snapshot,
        };
        let catalog = facts.cluster.objects.catalog;
        let parameters = class.parameters.iter();
        let capability = catalog
            .capability(class.driver(), parameters, mode, Some(claim))
            .with_stated(stated.unwrap_or_default());
        Self {
            support: capability.judge(AccessModes::of(&[wanted.mode])),
            capability,
            class,
        }
    }

    /// Whether it may be taken without anybody's word for it.
    fn is_suited(&self, subject: &Subject<'_>, wanted: Wanted<'_>) -> bool {
        let class = self.class;
        self.support == Support::Supported
            && self.capability.node_local() == NodeLocal::No
            && class.provisioner != NO_PROVISIONER
            && !PreservedMetadata::of(class).is_bucket
            && (wanted.copy != CopyBy::Snapshot || class.driver() == subject.driver)
    }
}

impl<'a> Target<'a> {
    pub(super) fn of(
        subject: &Subject<'a>,
        wanted: Wanted<'_>,
        facts: MigrationInput<'a>,
    ) -> Result<Self, MigrationBlocked> {
        let mode = subject.claim.spec.volume_mode;
        let objects = facts.cluster.objects;
        let mut candidates: Vec<Candidate<'a>> = objects
            .view
            .storage_classes()
            .into_iter()
            .map(|class| Candidate::of(class, mode, wanted, facts))
            .collect();
        // The claim's own class changes least, its driver next, the default class is what
        // the cluster is meant for. The sort keeps the order of names.
        let own = subject.claim.class();
        candidates.sort_by_key(|it| {
            (
                own != Some(it.class.metadata.name.as_str()),
                it.class.driver() != subject.driver,
                !it.class.is_default(),
                it.capability.confidence(),
            )
        });
        let found = match wanted.class {
            None => candidates.iter().find(|it| it.is_suited(subject, wanted)),
            Some(name) => candidates.iter().find(|it| it.class.metadata.name == name),
        };
        let Some(found) = found else {
            return missing(&candidates, subject, wanted, facts);
        };
        let (sure, unproven) = match &found.support {
            Support::Supported => (found.capability.confidence().text().to_owned(), false),
            Support::Unproven { hint, .. } => (format!("not proven: {hint}"), true),
            Support::Unknown => ("not known: the driver is in no catalog".to_owned(), true),
            Support::NotAsConfigured { hint, .. } => {
                return Err(cannot(
                    found,
                    &format!(": {hint}"),
                    &candidates,
                    subject,
                    wanted,
                ));
            }
            Support::Refused { .. } => {
                return Err(cannot(found, "", &candidates, subject, wanted));
            }
        };
        let (class, driver) = (&found.class.metadata.name, found.class.driver());
        let is_other =
            |it: &&Candidate<'a>| it.is_suited(subject, wanted) && it.class.metadata.name != *class;
        Ok(Self {
            class: class.clone(),
            driver: driver.into(),
            binds_late: found.class.binds_late(),
            sure,
            unproven,
            kept: PreservedMetadata::of(found.class),
            others: candidates
                .iter()
                .filter(is_other)
                .map(|it| it.class)
                .collect(),
        })
    }
}

/// What there is to say where the class is not among those that could be read.
fn missing<'a>(
    candidates: &[Candidate<'a>],
    subject: &Subject<'_>,
    wanted: Wanted<'_>,
    facts: MigrationInput<'_>,
) -> Result<Target<'a>, MigrationBlocked> {
    let unread = facts.cluster.observed.unread("storageclasses");
    match (unread, wanted.class) {
        (Some(_), Some(class)) => Ok(Target {
            class: class.into(),
            driver: Text::default(),
            binds_late: true,
            sure: "not known: the StorageClasses could not be read".to_owned(),
            unproven: true,
            kept: PreservedMetadata::ALL,
            others: Vec::new(),
        }),
        (Some(unread), None) => Err(MigrationBlocked::ClassesUnread(unread.reason.clone())),
        (None, Some(class)) => Err(MigrationBlocked::NoSuchClass {
            class: class.to_owned(),
            instead: instead(candidates, subject, wanted),
        }),
        (None, None) => Err(MigrationBlocked::NoClass {
            mode: wanted.mode,
            volume_mode: subject.claim.spec.volume_mode,
            instead: instead(candidates, subject, wanted),
        }),
    }
}

fn cannot(
    found: &Candidate<'_>,
    hint: &str,
    candidates: &[Candidate<'_>],
    subject: &Subject<'_>,
    wanted: Wanted<'_>,
) -> MigrationBlocked {
    MigrationBlocked::ClassCannot {
        class: found.class.metadata.name.to_string(),
        driver: found.class.driver().to_owned(),
        mode: wanted.mode,
        volume_mode: subject.claim.spec.volume_mode,
        hint: hint.to_owned(),
        instead: instead(candidates, subject, wanted),
    }
}

/// The classes of the cluster that can, or might; and what would where there is none.
fn instead(candidates: &[Candidate<'_>], subject: &Subject<'_>, wanted: Wanted<'_>) -> String {
    let named =
        |it: &Candidate<'_>| format!("\"{}\" ({})", it.class.metadata.name, it.class.driver());
    let suited: Vec<String> = candidates
        .iter()
        .filter(|it| it.is_suited(subject, wanted))
        .map(named)
        .collect();
    if !suited.is_empty() {
        return format!("These classes of the cluster can: {}.", suited.join(", "));
    }
    let might: Vec<String> = candidates
        .iter()
        .filter_map(|it| match &it.support {
            Support::Unproven { hint, .. } | Support::NotAsConfigured { hint, .. } => {
                Some(format!("{}: {hint}", named(it)))
            }
            Support::Unknown => Some(format!("{}: in no catalog", named(it))),
            Support::Supported | Support::Refused { .. } => None,
        })
        .collect();
    let mut text = String::new();
    if !might.is_empty() {
        text = format!(
            "Some might, and --class takes one that nothing speaks against: {}. ",
            might.join("; ")
        );
    }
    if subject.claim.spec.volume_mode == VolumeMode::Filesystem {
        let driver = subject.driver.as_str();
        let companion = COMPANIONS.iter().find(|(end, _)| driver.ends_with(end));
        let companion = companion.map_or_else(String::new, |(_, name)| format!("{name}, or "));
        text += &format!(
            "It takes a shared file system: {companion}a class of an NFS server (nfs.csi.k8s.io), of CephFS or of Longhorn."
        );
    } else {
        text += "It takes a driver that shares raw block devices between nodes.";
    }
    text
}
