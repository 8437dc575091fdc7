//! Helm hooks: objects of a chart that exist only at certain times.

use super::tree::{Id, Tree};

/// The time at which an object that is a Helm hook exists, relative to its release.
///
/// Source: <https://helm.sh/docs/topics/charts_hooks/>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelmHook {
    /// Only before the release is installed or after it is deleted.
    OutsideRelease,
    /// Only when somebody runs `helm test`.
    Test,
    /// For a time while the release is installed.
    WithRelease,
}

impl HelmHook {
    /// The kind of Helm hook that the object `id` is, if it is one.
    pub(super) fn of(tree: &Tree<'_>, id: Id) -> Option<Self> {
        let annotations = tree.at(id, "metadata.annotations")?;
        let mut hooks = tree.string(annotations, "helm.sh/hook")?.split(',').map(str::trim);
        Some(if hooks.clone().all(|hook| hook.starts_with("test")) {
            Self::Test
        } else if hooks.all(|hook| matches!(hook, "pre-install" | "post-delete" | "crd-install")) {
            Self::OutsideRelease
        } else {
            Self::WithRelease
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_say_when_an_object_is_there() {
        for (hooks, expected) in [
            ("pre-install", Some(HelmHook::OutsideRelease)),
            ("pre-install, post-delete", Some(HelmHook::OutsideRelease)),
            ("pre-install,pre-upgrade", Some(HelmHook::WithRelease)),
            ("post-install", Some(HelmHook::WithRelease)),
            ("test", Some(HelmHook::Test)),
            ("test-success", Some(HelmHook::Test)),
        ] {
            let text = format!("metadata: {{annotations: {{helm.sh/hook: \"{hooks}\"}}}}");
            let tree = Tree::parse(&text).unwrap().unwrap();
            assert_eq!(HelmHook::of(&tree, tree.root()), expected, "{hooks}");
        }
        let tree = Tree::parse("metadata: {annotations: {a: b}}").unwrap().unwrap();
        assert_eq!(HelmHook::of(&tree, tree.root()), None);
    }
}
