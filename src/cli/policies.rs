//! `policies`: what the API server can refuse or repair by itself, for review and to apply.

use std::process::ExitCode;

use clap::Args;

use super::output::print;

const DEFINITION: &str = include_str!("../../manifests/components/admission-policies/crd.yaml");
const POLICIES: &str = include_str!("../../manifests/components/admission-policies/policies.yaml");
const REPAIR: &str =
    include_str!("../../manifests/components/admission-policies-repair/repair.yaml");

/// What the name of an object in a manifest directory ends with
/// (`k8s.io/apiserver`, `pkg/admission/plugin/manifest/validation.go`).
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Above the policies of a manifest directory.
const STATIC_HEADER: &str = "\
# Save this file in a directory on every control plane node, and name the directory in the file
# given to kube-apiserver with --admission-control-config-file:
#
#   apiVersion: apiserver.config.k8s.io/v1
#   kind: AdmissionConfiguration
#   plugins:
#     - name: MutatingAdmissionPolicy
#       configuration:
#         apiVersion: apiserver.config.k8s.io/v1
#         kind: MutatingAdmissionPolicyConfiguration
#         staticManifestsDir: /etc/kubernetes/multi-attach-guard
#
# Needs Kubernetes 1.37 (KEP-5793), or 1.36 with the feature gate
# ManifestBasedAdmissionControlConfig. Such a policy works before etcd answers and nobody can
# delete it through the API. It sees no facts about volumes, so it only drops a leftover
# rollingUpdate block; it denies nothing.
";

/// The options of `policies`.
#[derive(Args, Clone, Copy, Debug)]
pub struct PoliciesOptions {
    /// Also print the policy that drops a leftover rollingUpdate block (Kubernetes 1.36 or newer)
    #[arg(long, conflicts_with = "manifest_dir")]
    pub repair: bool,

    /// Print what needs no facts, for a manifest directory of kube-apiserver
    #[arg(long)]
    pub manifest_dir: bool,
}

pub(super) fn run(options: PoliciesOptions) -> ExitCode {
    let text = match options {
        PoliciesOptions {
            manifest_dir: true, ..
        } => format!("{STATIC_HEADER}{}", static_manifest()),
        PoliciesOptions { repair: true, .. } => [DEFINITION, POLICIES, REPAIR].join("---\n"),
        _ => [DEFINITION, POLICIES].join("---\n"),
    };
    print("policies", text.as_bytes())
}

/// The repair under names that a manifest directory allows.
fn static_manifest() -> String {
    let name = "leftover-rolling-update.multi-attach-guard";
    REPAIR.replace(&format!("{name}.dev"), &format!("{name}{STATIC_SUFFIX}"))
}
