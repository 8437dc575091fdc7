//! The fields of each format that are known here: what is read, and what changes nothing that is
//! judged. Of a document with any other field nothing is said, as that may change the result.
//!
//! A path is that of keys, without the numbers of items; one that ends with `.*` stands for
//! everything inside.

use serde_json::Value;

/// The fields of one format.
pub(super) struct Known {
    /// What is read.
    pub(super) read: &'static [&'static str],
    /// What decides when, by whom and how often it is applied, or what is reported of it.
    pub(super) harmless: &'static [&'static str],
}

/// `helm.toolkit.fluxcd.io/v2`, and the older versions.
pub(super) const HELM_RELEASE: Known = Known {
    read: &[
        "chart.spec.chart",
        "chart.spec.ignoreMissingValuesFiles",
        "chart.spec.sourceRef.*",
        "chart.spec.valuesFile",
        "chart.spec.valuesFiles",
        "chart.spec.version",
        "chartRef.*",
        "postRenderers.kustomize.images.*",
        "postRenderers.kustomize.patches.patch",
        "postRenderers.kustomize.patches.target.*",
        "postRenderers.kustomize.patchesJson6902.patch.*",
        "postRenderers.kustomize.patchesJson6902.target.*",
        "postRenderers.kustomize.patchesStrategicMerge.*",
        "releaseName",
        "targetNamespace",
        "values.*",
        "valuesFrom.kind",
        "valuesFrom.name",
        "valuesFrom.optional",
        "valuesFrom.targetPath",
        "valuesFrom.valuesKey",
    ],
    harmless: &[
        "chart.metadata.*",
        "chart.spec.interval",
        "chart.spec.reconcileStrategy",
        "chart.spec.verify.*",
        "commonMetadata.labels.*",
        "dependsOn.*",
        "driftDetection.*",
        "healthCheckExprs.*",
        "install.crds",
        "install.createNamespace",
        "install.disableOpenAPIValidation",
        "install.disableSchemaValidation",
        "install.disableTakeOwnership",
        "install.disableWait",
        "install.disableWaitForJobs",
        "install.remediation.*",
        "install.replace",
        "install.serverSideApply",
        "install.skipCRDs",
        "install.strategy.*",
        "install.timeout",
        "interval",
        "maxHistory",
        "persistentClient",
        "rollback.cleanupOnFail",
        "rollback.disableWait",
        "rollback.disableWaitForJobs",
        "rollback.force",
        "rollback.recreate",
        "rollback.serverSideApply",
        "rollback.timeout",
        "serviceAccountName",
        "storageNamespace",
        "suspend",
        "test.*",
        "timeout",
        "uninstall.*",
        "upgrade.cleanupOnFail",
        "upgrade.crds",
        "upgrade.disableOpenAPIValidation",
        "upgrade.disableSchemaValidation",
        "upgrade.disableTakeOwnership",
        "upgrade.disableWait",
        "upgrade.disableWaitForJobs",
        "upgrade.force",
        "upgrade.remediation.*",
        "upgrade.serverSideApply",
        "upgrade.strategy.*",
        "upgrade.timeout",
        "waitStrategy.*",
    ],
};

/// `kustomize.toolkit.fluxcd.io/v1`, and the older versions.
pub(super) const KUSTOMIZATION: Known = Known {
    read: &[
        "components",
        "namePrefix",
        "nameSuffix",
        "patches.patch",
        "patches.target.*",
        "path",
        "postBuild.substitute.*",
        "postBuild.substituteFrom.kind",
        "postBuild.substituteFrom.name",
        "postBuild.substituteFrom.optional",
        "sourceRef.*",
        "targetNamespace",
    ],
    harmless: &[
        "commonMetadata.labels.*",
        "decryption.*",
        "deletionPolicy",
        "dependsOn.*",
        "force",
        "healthCheckExprs.*",
        "healthChecks.*",
        "images.*",
        "interval",
        "prune",
        "retryInterval",
        "serviceAccountName",
        "suspend",
        "timeout",
        "validation",
        "wait",
    ],
};

/// `argoproj.io/v1alpha1`. A source has the same fields wherever it stands.
pub(super) const APPLICATION: Known = Known {
    read: &[
        "destination.namespace",
        "source.chart",
        "source.directory.recurse",
        "source.helm.ignoreMissingValueFiles",
        "source.helm.namespace",
        "source.helm.parameters.forceString",
        "source.helm.parameters.name",
        "source.helm.parameters.value",
        "source.helm.releaseName",
        "source.helm.valueFiles",
        "source.helm.values",
        "source.helm.valuesObject.*",
        "source.kustomize.commonAnnotations.*",
        "source.kustomize.commonLabels.*",
        "source.kustomize.components",
        "source.kustomize.namePrefix",
        "source.kustomize.nameSuffix",
        "source.kustomize.namespace",
        "source.kustomize.patches.patch",
        "source.kustomize.patches.target.*",
        "source.kustomize.replicas.*",
        "source.path",
        "source.ref",
        "source.repoURL",
        "source.targetRevision",
    ],
    harmless: &[
        "destination.name",
        "destination.server",
        "ignoreDifferences.*",
        "info.*",
        "project",
        "revisionHistoryLimit",
        "source.helm.passCredentials",
        "source.helm.skipCrds",
        "source.helm.skipSchemaValidation",
        "source.helm.version",
        "source.kustomize.images",
        "source.name",
        "syncPolicy.*",
    ],
};

impl Known {
    /// The path of a field of the specification that is not known.
    pub(super) fn unknown(&self, document: &Value) -> Option<String> {
        let found = self.unknown_in(document.get("spec")?, "")?;
        Some(format!("spec.{found}"))
    }

    fn unknown_in(&self, value: &Value, path: &str) -> Option<String> {
        // The sources of an Application are each as the one.
        let plain = match path.strip_prefix("sources") {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => &format!("source{rest}"),
            _ => path,
        };
        if self.holds(plain) {
            return None;
        }
        match value {
            Value::Object(fields) => fields.iter().find_map(|(key, value)| {
                let path = match path {
                    "" => key.clone(),
                    _ => format!("{path}.{key}"),
                };
                self.unknown_in(value, &path)
            }),
            Value::Array(items) => items.iter().find_map(|it| self.unknown_in(it, path)),
            Value::Null => None,
            _ => Some(path.to_owned()),
        }
    }

    fn holds(&self, path: &str) -> bool {
        self.read.iter().chain(self.harmless).any(|known| {
            let above = known.strip_suffix(".*");
            *known == path || above.is_some_and(|above| path == above)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{APPLICATION, HELM_RELEASE, KUSTOMIZATION, Known};

    /// A specification with one value at the path.
    fn with(path: &str) -> Value {
        let leaf = json!("x");
        let keys = path.trim_end_matches(".*").rsplit('.');
        json!({"spec": keys.fold(leaf, |value, key| json!({key: value}))})
    }

    /// Other fields of the formats' schemas, all of which can change what is made.
    const OTHERS: [(&Known, &[&str]); 3] = [
        (
            &HELM_RELEASE,
            &[
                "commonMetadata.annotations.a",
                "install.disableHooks",
                "kubeConfig.secretRef.name",
                "postRenderers.exec.command",
                "postRenderers.kustomize.patches.options.allowNameChange",
                "postRenderers.kustomize.patches.path",
                "upgrade.disableHooks",
                "upgrade.preserveValues",
                "valuesFrom.literal",
            ],
        ),
        (
            &KUSTOMIZATION,
            &[
                "commonMetadata.annotations.a",
                "ignoreMissingComponents",
                "kubeConfig.configMapRef.name",
                "patches.options.allowKindChange",
                "patchesJson6902.patch",
                "patchesStrategicMerge",
                "postBuild.substituteStrategy",
            ],
        ),
        (
            &APPLICATION,
            &[
                "source.directory.exclude",
                "source.directory.include",
                "source.directory.jsonnet.libs",
                "source.helm.apiVersions",
                "source.helm.fileParameters.path",
                "source.helm.kubeVersion",
                "source.helm.skipTests",
                "source.kustomize.apiVersions",
                "source.kustomize.commonAnnotationsEnvsubst",
                "source.kustomize.forceCommonLabels",
                "source.kustomize.ignoreMissingComponents",
                "source.kustomize.labelIncludeTemplates",
                "source.kustomize.labelWithoutSelector",
                "source.kustomize.patches.options.allowNameChange",
                "source.kustomize.patches.path",
                "source.kustomize.version",
                "source.plugin.name",
                "sourceHydrator.drySource.path",
                "sources.helm.fileParameters.path",
                "sources.plugin.name",
            ],
        ),
    ];

    #[test]
    fn a_field_outside_of_the_table_is_named() {
        for (known, others) in OTHERS {
            for path in others {
                let expected = Some(format!("spec.{path}"));
                assert_eq!(known.unknown(&with(path)), expected);
            }
            for path in known.read.iter().chain(known.harmless) {
                assert_eq!(known.unknown(&with(path)), None, "{path}");
            }
            assert_eq!(
                known.unknown(&with("something.new")).as_deref(),
                Some("spec.something.new")
            );
        }
        let several = json!({"spec": {"sources": [{"path": "a"}, {"path": "b", "new": null}]}});
        assert_eq!(APPLICATION.unknown(&several), None);
    }
}
