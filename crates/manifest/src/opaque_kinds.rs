//! Objects that stand for others which only a controller makes of them.

/// What an object of this kind stands for is not among the files, so that nothing
/// is known of it.
pub(super) fn stands_for_others(api_version: &str, kind: &str) -> bool {
    const KINDS: [(&str, &str); 10] = [
        // https://fluxcd.io/flux/components/
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        // https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/
        ("argoproj.io", "Application"),
        ("argoproj.io", "ApplicationSet"),
        // https://argo-rollouts.readthedocs.io/en/stable/features/specification/
        ("argoproj.io", "Rollout"),
        // An autoscaler: https://keda.sh/docs/latest/reference/scaledobject-spec/
        ("keda.sh", "ScaledObject"),
        // https://docs.k3s.io/add-ons/helm
        ("helm.cattle.io", "HelmChart"),
        // https://docs.openshift.com/container-platform/latest/openshift_images/using-templates.html
        ("template.openshift.io", "Template"),
        ("v1", "Template"),
        // https://docs.openshift.com/container-platform/latest/applications/deployments/what-deployments-are.html
        ("apps.openshift.io", "DeploymentConfig"),
    ];
    let group = api_version.split('/').next().unwrap_or_default();
    KINDS.contains(&(group, kind))
}
