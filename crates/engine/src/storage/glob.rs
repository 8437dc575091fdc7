//! Patterns over provisioner names.

use wildmatch::WildMatchPattern;

use crate::model::Text;

/// A provisioner name in which `*` stands for any text, the empty one included.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Glob {
    pattern: Text,
    // A name never contains a NUL, so no character is a wildcard for a single character.
    matcher: WildMatchPattern<'*', '\0'>,
}

impl Glob {
    /// `pattern` as a glob; `None` if it holds no `*` and is thus an exact name.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        pattern
            .contains('*')
            .then(|| Self { pattern: pattern.into(), matcher: WildMatchPattern::new(pattern) })
    }

    /// The pattern as it was written.
    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The bytes of the pattern that are not `*`: the longer, the more precise.
    pub(super) fn fixed_len(&self) -> usize {
        self.pattern.bytes().filter(|byte| *byte != b'*').count()
    }

    /// Whether `name`, whole or cut by a chart, fits the pattern.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.matcher.matches(name) || self.matches_cut(name)
    }

    /// Whether `name` may be a cut name that fits the pattern. Charts name a provisioner
    /// `cluster.local/RELEASE-CHART`, and cut the part behind the slash at 63 characters.
    fn matches_cut(&self, name: &str) -> bool {
        let Some((start, end)) = self.pattern.split_once('*') else {
            return false;
        };
        name.rsplit_once('/').is_some_and(|(_, cut)| cut.len() == MAX_NAME)
            && name.starts_with(start)
            && (MIN_LEFT..end.len())
                .filter_map(|length| end.get(..length))
                .any(|left| name.ends_with(left))
    }
}

/// The most characters of a name that charts create.
const MAX_NAME: usize = 63;

/// The fewest characters of the end of a pattern that must be left in a cut name to identify it.
const MIN_LEFT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("*.rbd.csi.ceph.com", "rook-ceph.rbd.csi.ceph.com", true),
            ("*.rbd.csi.ceph.com", "rbd.csi.ceph.com", false),
            ("*.rbd.csi.ceph.com", "a.rbd.csi.ceph.com.example", false),
            ("org.democratic-csi.*", "org.democratic-csi.nfs-eu", true),
            ("org.democratic-csi.*", "org.democratic-csi.", true),
            ("cluster.local/*nfs-client-provisioner", "cluster.local/nfs-client-provisioner", true),
            (
                "cluster.local/*nfs-client-provisioner",
                "cluster.local/a-nfs-client-provisioner",
                true,
            ),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*b*c", "abc", true),
            ("*", "", true),
        ];
        let long = |end: &str| format!("cluster.local/{end:x>63}");
        let chart = "*nfs-subdir-external-provisioner";
        for (pattern, end, expected) in [
            (chart, "-nfs-subdir-exter", true),
            (chart, "-nfs-sub", false),
            (chart, "-nfs-subdir-other", false),
            ("cluster.local/*nfs-server-provisioner", "-nfs-server-prov", true),
            ("example.com/*nfs-server-provisioner", "-nfs-server-prov", false),
        ] {
            let (glob, name) = (Glob::new(pattern).unwrap(), long(end));
            assert_eq!(glob.matches(&name), expected, "{pattern} against {name}");
            assert!(!glob.matches(&name[..name.len() - 1]), "{pattern}: not cut");
        }
        for (pattern, name, expected) in cases {
            let glob = Glob::new(pattern).unwrap();
            assert_eq!(glob.matches(name), expected, "{pattern} against {name}");
        }
        assert_eq!(Glob::new("ebs.csi.aws.com"), None);
        assert_eq!(Glob::new("*.x*").unwrap().fixed_len(), 2);
    }
}
