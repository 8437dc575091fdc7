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

const STANDALONE: &str = include_str!("../../manifests/standalone-policy/policy.yaml");

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

    /// Print the one policy that works without the webhook, by the claims of a namespace alone
    #[arg(long, conflicts_with_all = ["repair", "manifest_dir"])]
    pub standalone: bool,

    /// Let the standalone policy refuse objects, not only warn
    #[arg(long, requires = "standalone")]
    pub deny: bool,
}

pub(super) fn run(options: PoliciesOptions) -> ExitCode {
    let text = if options.standalone {
        standalone(options.deny)
    } else if options.manifest_dir {
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

/// The policy that needs no facts. Where it refuses objects, a Namespace may ask for warnings only,
/// which the policy cannot give to one namespace: it passes those objects.
fn standalone(denies: bool) -> String {
    if denies {
        STANDALONE.replace("[Warn, Audit]", "[Deny, Audit]").replace("[ignore]", "[ignore, warn]")
    } else {
        STANDALONE.to_owned()
    }
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::{Value, json};

    use super::{POLICIES, STANDALONE, standalone};

    /// The expressions of the first policy, by the names of their variables.
    fn variables(text: &str) -> HashMap<String, String> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        let string = |value: &Value| value.as_str().unwrap().to_owned();
        let variables = documents[0]["spec"]["variables"].as_array().unwrap().iter();
        variables
            .map(|variable| (string(&variable["name"]), string(&variable["expression"])))
            .collect()
    }

    #[test]
    fn both_policies_resolve_a_rolling_update_in_the_same_words() {
        let (with_facts, standalone) = (variables(POLICIES), variables(STANDALONE));
        let own = ["annotations", "isExempt", "isOwned", "podsGoAnywhere", "replicas"];
        let mut shared = 0;
        for (name, expression) in &standalone {
            if let Some(other) = with_facts.get(name).filter(|_| !own.contains(&&**name)) {
                assert_eq!(expression, other, "{name}");
                shared += 1;
            }
        }
        assert!(shared > 12, "{shared}");
    }

    #[test]
    fn the_standalone_policy_refuses_only_on_request() {
        for (denies, actions, namespaces) in [
            (false, json!(["Warn", "Audit"]), json!(["ignore"])),
            (true, json!(["Deny", "Audit"]), json!(["ignore", "warn"])),
        ] {
            let objects: Vec<Value> = serde_saphyr::from_multiple(&standalone(denies)).unwrap();
            let selector = "/spec/matchConstraints/namespaceSelector/matchExpressions/1/values";
            assert_eq!(objects[0].pointer(selector), Some(&namespaces));
            assert_eq!(objects[1]["spec"]["validationActions"], actions);
        }
    }
}
