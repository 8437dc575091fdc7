//! The version of the API server, as far as behaviour depends on it.

/// The oldest and the newest minor whose behaviour is known.
const KNOWN: [u32; 2] = [30, 38];

/// The version of an API server. By default it is not known, as with files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerVersion {
    /// The number after `1.`, at most that of the newest known minor.
    minor: Option<u32>,
}

impl ServerVersion {
    /// Reads the `gitVersion` of `/version`, such as `v1.38.2-eks-1a2b3c`, and returns a sentence if
    /// its behaviour is not known. A newer version counts as the newest known one; an older one, and
    /// words that are no version, stay unknown.
    pub fn read(git_version: &str) -> (Self, Option<String>) {
        let [oldest, newest] = KNOWN;
        let minor = git_version.strip_prefix("v1.").map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_digit());
            end.map_or(rest, |end| &rest[..end])
        });
        let number =
            minor.and_then(|minor| minor.parse().ok()).filter(|number: &u32| *number >= oldest);
        let is_known = number.is_some_and(|number| number <= newest);
        let remark = (!is_known).then(|| {
            let said: String = git_version.chars().take(40).collect();
            format!(
                "The API server reports the version {said:?}. This program knows Kubernetes 1.{oldest} to 1.{newest}, and expects the server to behave as 1.{newest}."
            )
        });
        (Self { minor: number.map(|number| number.min(newest)) }, remark)
    }

    /// The minor in the form that [`Self::read`] reads, if it is known.
    pub fn git_version(self) -> Option<String> {
        self.minor.map(|minor| format!("v1.{minor}"))
    }

    /// Whether a StatefulSet may have the strategy Recreate: its feature gate is on by default
    /// (`StatefulSetRecreateStrategy` in `pkg/features/kube_features.go`).
    pub fn recreates_stateful_sets(self) -> bool {
        self.minor.is_some_and(|minor| minor >= 38)
    }

    /// Whether no feature gate makes the server accept Recreate in a StatefulSet.
    pub(crate) fn refuses_to_recreate_stateful_sets(self) -> bool {
        self.minor.is_some_and(|minor| minor < 37)
    }

    /// Whether the volumes of a deleted Node stay attached for six minutes after its last pod. A
    /// version that is not known behaves as the newest one (`nodeDelete` in
    /// `pkg/controller/volume/attachdetach/attach_detach_controller.go`).
    pub fn waits_after_a_node_is_deleted(self) -> bool {
        self.minor.is_some_and(|minor| minor < 38)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_unknown_ones_are_named() {
        for (said, expected, is_known) in [
            ("v1.37.2", Some(37), true),
            ("v1.38.0-beta.0", Some(38), true),
            ("v1.30.14+k3s1", Some(30), true),
            ("v1.38", Some(38), true),
            ("v1.41.0", Some(38), false),
            ("v1.29.9", None, false),
            ("v2.38.0", None, false),
            ("v1.99999999999.0", None, false),
            ("nonsense\u{1b}[31m", None, false),
            ("", None, false),
        ] {
            let (server, remark) = ServerVersion::read(said);
            assert_eq!(server.minor, expected, "{said}");
            assert_eq!(remark.is_none(), is_known, "{said}");
            assert!(remark.is_none_or(|remark| !remark.contains('\u{1b}')), "{said}");
        }
    }

    #[test]
    fn an_unknown_version_detaches_as_the_newest_and_recreates_as_the_oldest() {
        for (said, recreates, refuses, waits) in [
            ("v1.36.0", false, true, true),
            ("v1.37.0", false, false, true),
            ("v1.38.0", true, false, false),
            ("v1.99.0", true, false, false),
            ("nonsense", false, false, false),
        ] {
            let (server, _) = ServerVersion::read(said);
            assert_eq!(server.recreates_stateful_sets(), recreates, "{said}");
            assert_eq!(server.refuses_to_recreate_stateful_sets(), refuses, "{said}");
            assert_eq!(server.waits_after_a_node_is_deleted(), waits, "{said}");
        }
    }
}
