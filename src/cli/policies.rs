//! `policies`: prints the policies by which the API server itself refuses or repairs objects, for
//! review and to apply; and compares those in a cluster with those of this version.

use std::process::ExitCode;

use clap::Args;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;

use super::output::print;

const DEFINITION: &str = include_str!("../../manifests/components/admission-policies/crd.yaml");
const POLICIES: &str = include_str!("../../manifests/components/admission-policies/policies.yaml");
const REPAIR: &str =
    include_str!("../../manifests/components/admission-policies-repair/repair.yaml");

/// The end of the name of an object in a manifest directory (`k8s.io/apiserver`,
/// `pkg/admission/plugin/manifest/validation.go`).
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// The header above the policies of a manifest directory.
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
pub(crate) struct PoliciesOptions {
    /// Also print the policy that drops a leftover rollingUpdate block (Kubernetes 1.36 or newer)
    #[arg(long, conflicts_with = "manifest_dir")]
    pub repair: bool,

    /// Print the policy that needs no facts, for a manifest directory of kube-apiserver
    #[arg(long)]
    pub manifest_dir: bool,
}

pub(super) fn run(options: PoliciesOptions) -> ExitCode {
    let text = if options.manifest_dir {
        // The repair gets names that a manifest directory allows.
        let name = "leftover-rolling-update.multi-attach-guard";
        let repair = REPAIR.replace(&format!("{name}.dev"), &format!("{name}{STATIC_SUFFIX}"));
        format!("{STATIC_HEADER}{repair}")
    } else if options.repair {
        [DEFINITION, POLICIES, REPAIR].join("---\n")
    } else {
        [DEFINITION, POLICIES].join("---\n")
    };
    print("policies", text.as_bytes())
}

/// The state of the policies in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Installed {
    /// The cluster has none of them.
    Nothing,
    /// The cluster has all of them, as this version makes them.
    AsHere,
    /// The cluster has something else; the sentence says what, and what to do.
    Otherwise(String),
}

/// Compares the policies in the API server, their bindings and the definition of their
/// parameters with those of this version. The repair is optional, and any namespaces may be
/// exempt.
///
/// # Errors
/// Fails if the API server does not return them.
pub(super) async fn installed(client: &Client) -> Result<Installed, kube::Error> {
    let mut faults = Vec::new();
    let mut is_installed = false;
    for (text, is_optional) in [(DEFINITION, false), (POLICIES, false), (REPAIR, true)] {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_default();
        for ours in documents {
            let field = |pointer| ours.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (field("/kind"), field("/metadata/name"));
            let group = field("/apiVersion").split('/').next().unwrap_or_default();
            let kind_of = GroupVersionKind::gvk(group, "v1", kind);
            let objects: Api<DynamicObject> =
                Api::all_with(client.clone(), &ApiResource::from_gvk(&kind_of));
            match objects.get_opt(name).await? {
                None if is_optional => {}
                None => faults.push(format!("{kind} {name} is missing")),
                Some(theirs) => {
                    is_installed = true;
                    if !says(theirs.data.get("spec"), &ours["spec"]) {
                        faults.push(format!("{kind} {name} differs"));
                    }
                }
            }
        }
    }
    Ok(match (is_installed, &*faults) {
        (false, _) => Installed::Nothing,
        (true, []) => Installed::AsHere,
        (true, faults) => Installed::Otherwise(format!(
            "The policies in the API server are not those of multi-attach-guard {}: {}. Upgrade \
             them with the guard, or run `multi-attach-guard policies | kubectl apply -f -`.",
            env!("CARGO_PKG_VERSION"),
            faults.join(", ")
        )),
    })
}

/// Whether `theirs` has everything that is in `ours`; the API server adds defaults.
fn says(theirs: Option<&Value>, ours: &Value) -> bool {
    match (theirs, ours) {
        (Some(Value::Object(theirs)), Value::Object(ours)) => {
            ours.iter().all(|(key, ours)| key == "namespaceSelector" || says(theirs.get(key), ours))
        }
        (Some(Value::Array(theirs)), Value::Array(ours)) => {
            theirs.len() == ours.len()
                && theirs.iter().zip(ours).all(|(their, our)| says(Some(their), our))
        }
        (theirs, ours) => theirs == Some(ours),
    }
}
