//! What has no way, and what to do instead.

use engine::model::access_mode::{AccessMode, VolumeMode};

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationBlocked {
    /// A mode to which there is no way here.
    #[error(
        "Only a migration to ReadWriteMany is possible, and {0} was requested. To restrict a volume to fewer nodes or pods, no copy is needed: the same disk can be ReadWriteOnce or ReadWriteOncePod."
    )]
    Mode(AccessMode),
    /// A name that no object can have.
    #[error(
        "\"{0}\" is not a valid name for a claim: use at most 253 lower-case letters, digits, \"-\" and \".\", beginning and ending with a letter or digit. Choose another with --name."
    )]
    Name(String),
    /// Claims may not be read.
    #[error("The claims of namespace {namespace} could not be read: {reason}.")]
    ClaimsUnread {
        /// The namespace.
        namespace: String,
        /// Why not.
        reason: String,
    },
    /// There is no such claim.
    #[error(
        "There is no claim \"{claim}\" in namespace {namespace}. `kubectl get pvc -A` lists all claims; choose the namespace with -n."
    )]
    NoClaim {
        /// Its name.
        claim: String,
        /// Where it was looked for.
        namespace: String,
    },
    /// The claim is being deleted.
    #[error(
        "Claim {0} is being deleted and will be gone as soon as no pod uses it. To save its data, first set the reclaim policy of its volume to Retain."
    )]
    Deleting(String),
    /// It is what it should become.
    #[error("Claim {claim} is {mode} already.")]
    HasMode {
        /// The claim.
        claim: String,
        /// The mode.
        mode: AccessMode,
    },
    /// There is nothing to copy.
    #[error(
        "Claim {0} is not bound to a volume, so there is nothing to copy. Change the access mode in its manifest, then delete the claim and create it again, or use --copy none."
    )]
    NotBound(String),
    /// A StatefulSet makes the claim and names it.
    #[error(
        "StatefulSet {set} makes claim {claim} from its claim template \"{template}\": it uses the claim of that name and no other, and the template cannot be changed. Each of its pods has a claim of its own, so ReadWriteMany changes nothing for them. If they are to share one volume, create a ReadWriteMany claim, delete the StatefulSet with --cascade=orphan, and create it again with that claim among the volumes of its pod template and without the claim template. The old claims stay; somebody who knows their data has to merge it."
    )]
    ClaimTemplate {
        /// The claim.
        claim: String,
        /// The StatefulSet.
        set: String,
        /// The name of the template.
        template: String,
    },
    /// Something else makes the claim and names it.
    #[error(
        "{kind} {name} owns claim {claim} and is the one to change: its controller would not use a claim of another name. Ask for ReadWriteMany there, as its documentation says."
    )]
    Owned {
        /// The claim.
        claim: String,
        /// The owner's kind.
        kind: String,
        /// The owner's name.
        name: String,
    },
    /// No files.
    #[error(
        "Claim {0} is a raw block device (volumeMode Block), and only its user knows what is on it: there are no files to copy. Use --copy snapshot if the driver has snapshots and a class of the same driver gives ReadWriteMany for block devices, or copy it with the application's own tools."
    )]
    Block(String),
    /// A name that is taken.
    #[error(
        "There is already a claim \"{0}\". If it is left over from an earlier attempt and nothing in it is needed, delete it; otherwise choose another name with --name."
    )]
    NameTaken(String),
    /// Classes may not be read, and none is named.
    #[error(
        "The StorageClasses of the cluster could not be read: {0}. Name the class of the new claim with --class."
    )]
    ClassesUnread(String),
    /// There is no such class.
    #[error("There is no StorageClass \"{class}\". {instead}")]
    NoSuchClass {
        /// Its name.
        class: String,
        /// The classes that can, as sentences.
        instead: String,
    },
    /// The class cannot give the mode.
    #[error(
        "StorageClass \"{class}\" ({driver}) cannot give {mode} for volumeMode {volume_mode}{hint}. {instead}"
    )]
    ClassCannot {
        /// The class.
        class: String,
        /// Its driver.
        driver: String,
        /// The mode.
        mode: AccessMode,
        /// For which kind of volume.
        volume_mode: VolumeMode,
        /// What it would take, with what joins it to the sentence; may be empty.
        hint: String,
        /// The classes that can, as sentences.
        instead: String,
    },
    /// No class is known to give the mode.
    #[error(
        "No StorageClass of this cluster is known to give {mode} for volumeMode {volume_mode}. {instead}"
    )]
    NoClass {
        /// The mode.
        mode: AccessMode,
        /// For which kind of volume.
        volume_mode: VolumeMode,
        /// What would, as sentences.
        instead: String,
    },
    /// A snapshot of one driver, a class of another.
    #[error(
        "A snapshot can only be restored by the driver that made it: claim {claim} is of {from}, StorageClass \"{class}\" of {to}. Use --copy job."
    )]
    SnapshotOfAnotherDriver {
        /// The claim.
        claim: String,
        /// Its driver.
        from: String,
        /// The class.
        class: String,
        /// Its driver.
        to: String,
    },
    /// The driver makes no snapshots, as far as the cluster knows.
    #[error(
        "The cluster has no VolumeSnapshotClass of {0}, without which nobody makes snapshots of claims. Take --copy job, or ask whoever runs the cluster for one."
    )]
    NoSnapshotClass(String),
}
