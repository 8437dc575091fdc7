//! A policy's own provisioners, which correct the catalog.

use engine::model::access_mode::VolumeMode;
use engine::model::storage_class::StorageClass;
use engine::snapshot::Lookup;
use engine::storage::{
    Attach, AttachSource, Catalog, ClassModes, ClassSummary, ProvisionerOverride,
};

/// Accepted overrides take effect: each name is found, with the stated values.
pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let overrides: Vec<ProvisionerOverride> = match serde_saphyr::from_str(text) {
        Ok(overrides) => overrides,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let embedded = Catalog::embedded().expect("the catalog can be read");
    let mut names = std::collections::HashSet::new();
    if overrides.iter().any(|entry| entry.fault().is_some() || !names.insert(&entry.name)) {
        return;
    }
    let catalog = embedded.with_overrides(overrides.clone());
    // More specific entries overrule broader patterns, so only names are looked up.
    for stated in overrides.iter().filter(|stated| !stated.name.contains('*')) {
        let entry = catalog.get(&stated.name).expect("who was stated is known");
        let attach = catalog.attach(&stated.name, |_| Lookup::Absent);
        let class = StorageClass {
            provisioner: stated.name.clone(),
            parameters: [("type", "io2")].into_iter().collect(),
            ..StorageClass::default()
        };
        let _ = ClassSummary::new(&catalog, &class, ClassModes::default(), attach);
        for (mode, modes) in
            [(VolumeMode::Filesystem, stated.filesystem), (VolumeMode::Block, stated.block)]
        {
            let Some(modes) = modes else { continue };
            assert_eq!(entry.modes(mode).granted, Some(modes), "{stated:?}");
            assert_eq!(entry.modes(mode).possible, Some(modes), "{stated:?}");
        }
        if let Some(attach_required) = stated.attach_required {
            let by = AttachSource::Policy;
            let expected =
                if attach_required { Attach::Required { by } } else { Attach::NotRequired { by } };
            assert_eq!(attach, expected, "{stated:?}");
        }
        if let Some(node_local) = stated.node_local {
            assert_eq!(entry.node_local, node_local, "{stated:?}");
        }
    }
}
