//! The known fields of each format: those that are read, and those that do not affect the
//! judgement. A document with any other field is not judged, because that field may change the
//! result.
//!
//! A path consists of keys, without the indexes of items. A path that ends with `.*` stands for all
//! fields inside it.

use serde_json::Value;

/// The fields of one format, one path per line. A path after `!` is not known.
pub(super) struct Known(&'static str);

pub(super) const HELM_RELEASE: Known = Known(include_str!("known/helm_release.txt"));
pub(super) const KUSTOMIZATION: Known = Known(include_str!("known/kustomization.txt"));
pub(super) const APPLICATION: Known = Known(include_str!("known/application.txt"));

impl Known {
    /// The path of a field in the specification that is not known.
    pub(super) fn unknown(&self, document: &Value) -> Option<String> {
        self.unknown_in(document.get("spec")?, "spec")
    }

    fn unknown_in(&self, value: &Value, path: &str) -> Option<String> {
        // Each item of an Application's `sources` has the same fields as `source`.
        let plain = match path.strip_prefix("spec.sources") {
            Some(rest) if rest.is_empty() || rest.starts_with('.') => &format!("spec.source{rest}"),
            _ => path,
        };
        if self.holds(plain) {
            return None;
        }
        match value {
            Value::Object(fields) => fields
                .iter()
                .find_map(|(key, inner)| self.unknown_in(inner, &format!("{path}.{key}"))),
            Value::Array(items) => items.iter().find_map(|item| self.unknown_in(item, path)),
            Value::Null => None,
            _ => Some(path.to_owned()),
        }
    }

    fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.0.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '!']))
    }

    fn holds(&self, path: &str) -> bool {
        path.strip_prefix("spec.").is_some_and(|field| {
            self.paths().any(|known| known.strip_suffix(".*").unwrap_or(known) == field)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{APPLICATION, HELM_RELEASE, KUSTOMIZATION};

    /// A specification with one value at the path.
    fn with(path: &str) -> Value {
        let leaf = json!("x");
        let keys = path.trim_end_matches(".*").rsplit('.');
        json!({"spec": keys.fold(leaf, |value, key| json!({key: value}))})
    }

    #[test]
    fn a_field_outside_of_the_table_is_named() {
        for known in [&HELM_RELEASE, &KUSTOMIZATION, &APPLICATION] {
            let others = known.0.lines().filter_map(|line| line.strip_prefix('!'));
            assert!(others.clone().count() > 5);
            for path in others {
                let expected = Some(format!("spec.{path}"));
                assert_eq!(known.unknown(&with(path)), expected);
            }
            for path in known.paths() {
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
