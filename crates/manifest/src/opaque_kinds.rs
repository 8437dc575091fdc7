//! Objects that stand for others which only a controller makes of them.

/// What an object of this kind stands for is not among the files, so that nothing
/// is known of it.
pub(super) fn stands_for_others(api_version: &str, kind: &str) -> bool {
    const KINDS: [(&str, &str); 5] = [
        // https://fluxcd.io/flux/components/
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("kustomize.toolkit.fluxcd.io", "Kustomization"),
        // https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/
        ("argoproj.io", "Application"),
        ("argoproj.io", "ApplicationSet"),
        // https://docs.k3s.io/add-ons/helm
        ("helm.cattle.io", "HelmChart"),
    ];
    let group = api_version.split('/').next().unwrap_or_default();
    KINDS.contains(&(group, kind))
}
