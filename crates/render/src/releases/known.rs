//! The fields of each format that are known here: what is read, and what changes nothing that is
//! judged. Of a document with any other field nothing is said, as that may change the result.
//!
//! A path is that of keys, without the numbers of items; one that ends with `.*` stands for
//! everything inside.

use serde_json::Value;

/// The fields of one format: a path a line. One after `!` is not known.
pub(super) struct Known(&'static str);

pub(super) const HELM_RELEASE: Known = Known(include_str!("known/helm_release.txt"));
pub(super) const KUSTOMIZATION: Known = Known(include_str!("known/kustomization.txt"));
pub(super) const APPLICATION: Known = Known(include_str!("known/application.txt"));

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

    fn paths(&self) -> impl Iterator<Item = &'static str> {
        let lines = self.0.lines();
        lines.filter(|it| !it.is_empty() && !it.starts_with(['#', '!']))
    }

    fn holds(&self, path: &str) -> bool {
        self.paths()
            .any(|known| known.strip_suffix(".*").unwrap_or(known) == path)
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
            let others = known.0.lines().filter_map(|it| it.strip_prefix('!'));
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
