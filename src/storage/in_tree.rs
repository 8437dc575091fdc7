//! In-tree provisioners and the CSI drivers that Kubernetes hands their volumes to.

/// Plugin and driver names of every migrated type.
///
/// Source: `k8s.io/csi-translation-lib` v0.36.2, `translate.go` and
/// `plugins/*.go`. In Kubernetes 1.36 all seven are migrated without a way
/// back (`pkg/volume/csimigration/plugin_manager.go`,
/// `IsMigrationEnabledForPlugin`).
pub(super) const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// The name under which Kubernetes looks for the CSIDriver object of a
/// provisioner: the successor for a migrated in-tree name, else the name itself.
#[must_use]
pub fn csi_driver_of(provisioner: &str) -> &str {
    // Every other provisioner leaves at once: the table holds in-tree names only.
    if !provisioner.starts_with("kubernetes.io/") {
        return provisioner;
    }
    MIGRATED
        .iter()
        .find(|(plugin, _)| *plugin == provisioner)
        .map_or(provisioner, |(_, driver)| driver)
}

/// The in-tree provisioner whose volumes this CSI driver took over, if any.
#[must_use]
pub fn in_tree_plugin_of(driver: &str) -> Option<&'static str> {
    MIGRATED
        .iter()
        .find(|(_, successor)| *successor == driver)
        .map(|(plugin, _)| *plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_translate_both_ways() {
        for (plugin, driver) in MIGRATED {
            assert_eq!(csi_driver_of(plugin), driver);
            assert_eq!(in_tree_plugin_of(driver), Some(plugin));
        }
        assert_eq!(csi_driver_of("ebs.csi.aws.com"), "ebs.csi.aws.com");
        assert_eq!(csi_driver_of("kubernetes.io/rbd"), "kubernetes.io/rbd");
        assert_eq!(in_tree_plugin_of("rbd.csi.ceph.com"), None);
    }
}
