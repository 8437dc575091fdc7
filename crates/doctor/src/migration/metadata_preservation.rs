//! What storage keeps of files besides their content.

use engine::model::storage_class::StorageClass;

/// What a driver's volumes keep of files.
pub(super) struct PreservedMetadata {
    /// The options of rsync, as far as the storage can keep it. What it cannot keep
    /// and is requested to makes it fail, so that nothing is lost in silence.
    pub(super) flags: &'static str,
    /// What is lost, as a sentence; empty where nothing is.
    pub(super) lost: &'static str,
    /// Whether it is object storage, on which few applications can work.
    pub(super) is_bucket: bool,
}

/// Owners, rights, times, links, sparse files, ACLs and extended attributes.
const EVERYTHING: &str = "-aHAXS --numeric-ids";

const ALL: PreservedMetadata = PreservedMetadata {
    flags: EVERYTHING,
    lost: "",
    is_bucket: false,
};

/// Amazon EFS documentation, "Working with Amazon EFS access points": the user of an access
/// point takes the place of every other. NFS 4.1 has neither ACLs of this kind nor extended
/// attributes (RFC 8276 adds those to 4.2).
const ACCESS_POINT: PreservedMetadata = PreservedMetadata {
    flags: "-rlptDHS",
    lost: "On EFS every file belongs to the user of the volume's access point, whoever wrote it: owners and groups are not kept, nor are ACLs and extended attributes. An application that changes owners (chown) when it starts fails there; set uid and gid in the class to the ones it runs as.",
    is_bucket: false,
};

/// Linux kernel documentation, "mount.cifs": without the Unix extensions owners and rights
/// come from the mount options.
const SMB: PreservedMetadata = PreservedMetadata {
    flags: "-rltS",
    lost: "On SMB, owners and permissions come from the class's mount options and are the same for all files; hard links become copies, and ACLs and extended attributes are not kept.",
    is_bucket: false,
};

const BUCKET: PreservedMetadata = PreservedMetadata {
    flags: "-r --inplace",
    lost: "This is a bucket behind a file interface, not a file system: it has no owners, permissions or links and, depending on the driver, no renaming, appending or locking. Few applications can work on it.",
    is_bucket: true,
};

/// What keeps less than everything: the provisioner, and whether that is so only as long
/// as its parameter `protocol` is not `nfs`.
const LESS: [(&str, bool, &PreservedMetadata); 6] = [
    ("efs.csi.aws.com", false, &ACCESS_POINT),
    ("file.csi.azure.com", true, &SMB),
    ("smb.csi.k8s.io", false, &SMB),
    ("s3.csi.aws.com", false, &BUCKET),
    ("gcsfuse.csi.storage.gke.io", false, &BUCKET),
    ("blob.csi.azure.com", true, &BUCKET),
];

impl PreservedMetadata {
    /// Everything, as far as is known.
    pub(super) const ALL: &'static Self = &ALL;

    /// What the volumes of the class keep.
    pub(super) fn of(class: &StorageClass) -> &'static Self {
        let protocol = class.parameters.get("protocol").unwrap_or_default();
        let is_nfs = protocol.eq_ignore_ascii_case("nfs");
        let found = LESS.iter().find(|(provisioner, unless_nfs, _)| {
            class.driver() == *provisioner && !(*unless_nfs && is_nfs)
        });
        found.map_or(&ALL, |(_, _, kept)| kept)
    }
}
