//! The eleven back ends that articles on the Multi-Attach error write about,
//! and what each really gives.

use super::*;
use crate::model::access_mode::{AccessMode, AccessModes, VolumeMode};
use crate::snapshot::Lookup;
use VolumeMode::{Block, Filesystem};

#[derive(Clone, Copy)]
struct Case {
    provisioner: &'static str,
    mode: VolumeMode,
    parameters: &'static [(&'static str, &'static str)],
    data_source: bool,
    /// One letter for each of RWO, ROX, RWX, RWOP: Supported, not with these
    /// Parameter, Refused, Unproven, `?` unknown.
    answers: &'static str,
}

const fn case(
    provisioner: &'static str,
    mode: VolumeMode,
    parameters: &'static [(&'static str, &'static str)],
    answers: &'static str,
) -> Case {
    Case {
        provisioner,
        mode,
        parameters,
        data_source: false,
        answers,
    }
}

const fn cloned(case: Case) -> Case {
    Case {
        data_source: true,
        ..case
    }
}

const EBS: &str = "ebs.csi.aws.com";
const AZURE_DISK: &str = "disk.csi.azure.com";
const GOOGLE_PD: &str = "pd.csi.storage.gke.io";
const LONGHORN: &str = "driver.longhorn.io";
const LINSTOR: &str = "linstor.csi.linbit.com";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // AWS EBS, by its CSI name and its in-tree one.
    case(EBS, Filesystem, &[], "SRRS"),
    case(EBS, Filesystem, &[("type", "io2")], "SRRS"),
    case(EBS, Block, &[], "SRPS"),
    case(EBS, Block, &[("type", "io1")], "SRPS"),
    case(EBS, Block, &[("type", "io2")], "SRSS"),
    case("kubernetes.io/aws-ebs", Filesystem, &[], "SRRS"),
    case("kubernetes.io/aws-ebs", Block, &[("type", "gp3")], "SRPS"),
    case("kubernetes.io/aws-ebs", Block, &[("type", "io2")], "SRSS"),
    // AWS EFS.
    case("efs.csi.aws.com", Filesystem, &[], "SRSS"),
    case("efs.csi.aws.com", Block, &[], "RRRR"),
    // Azure Disk.
    case(AZURE_DISK, Filesystem, &[], "SRRS"),
    case(AZURE_DISK, Filesystem, &[("maxShares", "2")], "SRRS"),
    case(AZURE_DISK, Block, &[], "SPPS"),
    case(AZURE_DISK, Block, &[("maxShares", "1")], "SPPS"),
    case(AZURE_DISK, Block, &[("maxShares", "2")], "SSSS"),
    case(AZURE_DISK, Block, &[("maxshares", "5")], "SSSS"),
    case("kubernetes.io/azure-disk", Block, &[("maxShares", "2")], "SSSS"),
    // Azure Files.
    case("file.csi.azure.com", Filesystem, &[], "SSSS"),
    case("file.csi.azure.com", Filesystem, &[("protocol", "nfs")], "SSSS"),
    case("file.csi.azure.com", Block, &[], "RRRR"),
    // Google Persistent Disk and Hyperdisk.
    case(GOOGLE_PD, Filesystem, &[], "SPRS"),
    cloned(case(GOOGLE_PD, Filesystem, &[], "SSRS")),
    case(GOOGLE_PD, Filesystem, &[("type", "hyperdisk-ml")], "SSRS"),
    case(GOOGLE_PD, Filesystem, &[("type", "hyperdisk-balanced")], "SPRS"),
    cloned(case(GOOGLE_PD, Filesystem, &[("type", "hyperdisk-extreme")], "SPRS")),
    cloned(case(GOOGLE_PD, Filesystem, &[("type", "hyperdisk-balanced-high-availability")], "SPRS")),
    // No type is pd-standard.
    case(GOOGLE_PD, Block, &[], "SPSS"),
    cloned(case(GOOGLE_PD, Block, &[], "SSSS")),
    case(GOOGLE_PD, Block, &[("type", "pd-ssd")], "SPSS"),
    case(GOOGLE_PD, Block, &[("type", "hyperdisk-balanced")], "SPSS"),
    cloned(case(GOOGLE_PD, Block, &[("type", "hyperdisk-balanced-high-availability")], "SPSS")),
    case(GOOGLE_PD, Block, &[("type", "dynamic")], "SPSS"),
    case(GOOGLE_PD, Filesystem, &[("type", "dynamic")], "SPRS"),
    case(GOOGLE_PD, Filesystem, &[("type", "dynamic"), ("hyperdisk-type", "hyperdisk-ml")], "SSRS"),
    case(GOOGLE_PD, Block, &[("type", "hyperdisk-throughput")], "SPPS"),
    case(GOOGLE_PD, Block, &[("type", "hyperdisk-ml")], "SSPS"),
    case("kubernetes.io/gce-pd", Filesystem, &[("type", "pd-ssd")], "SSRS"),
    // Google Filestore.
    case("filestore.csi.storage.gke.io", Filesystem, &[], "SSSS"),
    case("filestore.csi.storage.gke.io", Block, &[], "RRRR"),
    // NFS, through CSI, an external provisioner and by hand.
    case("nfs.csi.k8s.io", Filesystem, &[], "SSSS"),
    case("nfs.csi.k8s.io", Block, &[], "RRRR"),
    case("cluster.local/nfs-subdir-external-provisioner", Filesystem, &[], "SSSS"),
    case("cluster.local/nfs-subdir-external-provisioner", Block, &[], "RRRR"),
    case("pv-source:nfs", Filesystem, &[], "SSSR"),
    // iSCSI, by hand and through the CSI sample driver.
    case("pv-source:iscsi", Filesystem, &[], "SSRR"),
    case("pv-source:iscsi", Block, &[], "SSRR"),
    case("iscsi.csi.k8s.io", Filesystem, &[], "SRRS"),
    case("iscsi.csi.k8s.io", Block, &[], "????"),
    // Longhorn.
    case(LONGHORN, Filesystem, &[], "SRSS"),
    case(LONGHORN, Filesystem, &[("migratable", "true")], "SRPS"),
    case(LONGHORN, Filesystem, &[("migratable", "false")], "SRSS"),
    case(LONGHORN, Block, &[], "SRPS"),
    case(LONGHORN, Block, &[("migratable", "false")], "SRPS"),
    case(LONGHORN, Block, &[("migratable", "true")], "SRSS"),
    case(LONGHORN, Block, &[("migratable", "True")], "SRSS"),
    // local-path: a shared directory is set in its configuration, not in the class.
    case("rancher.io/local-path", Filesystem, &[], "SUUS"),
    case("rancher.io/local-path", Block, &[], "RRRR"),
    // OpenEBS cStor.
    case("cstor.csi.openebs.io", Filesystem, &[], "SRRS"),
    case("cstor.csi.openebs.io", Block, &[], "SRRS"),
];

/// What parameters do to other back ends, read in their drivers' code.
#[rustfmt::skip]
const PARAMETERS: &[Case] = &[
    case(LINSTOR, Block, &[], "SSSS"),
    case(LINSTOR, Block, &[("layerList", "luks storage")], "SSPS"),
    case(LINSTOR, Block, &[("linstor.csi.linbit.com/layerlist", "storage")], "SSPS"),
    case(LINSTOR, Block, &[("layerList", "drbd luks storage")], "SSSS"),
    case(LINSTOR, Filesystem, &[], "SSUS"),
    case(LINSTOR, Filesystem, &[("layerList", "storage")], "SSPS"),
    case("csi.huawei.com", Block, &[("volumeType", "dtree")], "PPPP"),
    case("csi.huawei.com", Filesystem, &[("volumeType", "dtree")], "SSSS"),
    case("diskplugin.csi.alibabacloud.com", Block, &[("multiAttach", "Enabled")], "SSSS"),
    case("diskplugin.csi.alibabacloud.com", Block, &[("multiAttach", "no")], "SPPS"),
    case("csi.san.synology.com", Filesystem, &[("protocol", "NFS")], "SRSS"),
    case("spectrumscale.csi.ibm.com", Filesystem, &[], "SPSS"),
    cloned(case("spectrumscale.csi.ibm.com", Filesystem, &[], "SSSS")),
    case("spectrumscale.csi.ibm.com", Filesystem, &[("volumeType", "cache")], "SSSS"),
    case("csi.juicefs.com", Filesystem, &[], "SRSS"),
    case("csi.vsphere.vmware.com", Filesystem, &[("csi.storage.k8s.io/fstype", "nfs4")], "PSSP"),
    case("csi.hpe.com", Filesystem, &[], "SPPU"),
    case("csi.hpe.com", Filesystem, &[("accessProtocol", "nfs")], "SSSU"),
];

fn letter(support: &Support) -> char {
    match support {
        Support::Supported => 'S',
        Support::NotAsConfigured { .. } => 'P',
        Support::Refused { .. } => 'R',
        Support::Unproven { .. } => 'U',
        Support::Unknown => '?',
    }
}

#[test]
fn every_mode_on_every_back_end() {
    let catalog = Catalog::embedded().unwrap();
    for case in CASES.iter().chain(PARAMETERS) {
        let claim = ClaimFacts {
            has_data_source: case.data_source,
        };
        let parameters = case.parameters.iter().copied();
        let capability = catalog.capability(case.provisioner, parameters, case.mode, Some(claim));
        let answers: String = AccessMode::ALL
            .iter()
            .map(|mode| letter(&capability.judge(AccessModes::of(&[*mode]))))
            .collect();
        assert_eq!(
            answers, case.answers,
            "{} {} {:?} data source {}",
            case.provisioner, case.mode, case.parameters, case.data_source
        );
    }
}

#[test]
fn whether_each_back_end_attaches() {
    let catalog = Catalog::embedded().unwrap();
    let attached = [EBS, AZURE_DISK, GOOGLE_PD, LONGHORN, "pv-source:iscsi"];
    let not_attached = [
        "efs.csi.aws.com",
        "file.csi.azure.com",
        "filestore.csi.storage.gke.io",
        "nfs.csi.k8s.io",
        "pv-source:nfs",
        "iscsi.csi.k8s.io",
        "rancher.io/local-path",
        "cstor.csi.openebs.io",
    ];
    let by = AttachSource::Catalog;
    for name in attached {
        let attach = catalog.attach(name, |_| Lookup::Absent);
        assert_eq!(attach, Attach::Required { by }, "{name}");
    }
    for name in not_attached {
        let attach = catalog.attach(name, |_| Lookup::Absent);
        assert_eq!(attach, Attach::NotRequired { by }, "{name}");
    }
}
