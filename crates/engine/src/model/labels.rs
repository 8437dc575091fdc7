//! Labels, annotations and parameters.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Text;
use super::de::Borrowed;

/// A map of strings, sorted by key, as in labels, annotations and parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[(Text, Text)]>);

impl Labels {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(own, _)| own.as_str().cmp(key));
        Some(&self.0[at.ok()?].1)
    }

    /// Every key with its value, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every pair of these labels is in `other`.
    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|(key, value)| other.get(key) == Some(value))
    }

    /// These labels with `key` set to `value`.
    pub(crate) fn with(&self, key: &str, value: &str) -> Self {
        self.iter().chain([(key, value)]).collect()
    }
}

/// The last of two equal keys counts.
impl<K: Into<Text>, V: Into<Text>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Text, Text)> =
            pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        pairs.reverse();
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        pairs.dedup_by(|(one, _), (other, _)| one == other);
        Self(pairs.into_boxed_slice())
    }
}

impl serde::Serialize for Labels {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        filtered(deserializer, |_| true)
    }
}

/// Reads a map of strings but keeps only the keys that `keep` wants; the values of
/// others are skipped, however long they are.
pub(crate) fn filtered<'de, D: Deserializer<'de>>(
    deserializer: D,
    keep: fn(&str) -> bool,
) -> Result<Labels, D::Error> {
    struct Pairs(fn(&str) -> bool);

    impl<'de> Visitor<'de> for Pairs {
        type Value = Labels;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of strings")
        }

        fn visit_unit<E>(self) -> Result<Labels, E> {
            Ok(Labels::default())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
            let mut pairs = Vec::new();
            while let Some(Borrowed(key)) = map.next_key()? {
                if self.0(&key) {
                    let value: Option<Text> = map.next_value()?;
                    pairs.push((Text::from(key), value.unwrap_or_default()));
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(pairs.into_iter().collect())
        }
    }

    deserializer.deserialize_any(Pairs(keep))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    #[test]
    fn labels_are_sorted_and_the_last_of_equal_keys_counts() {
        let long = "x".repeat(70_000);
        type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);
        let cases: [Case; 6] = [
            ("empty", "{}", &[]),
            ("null", "null", &[]),
            ("sorted", r#"{"a":"1","b":"2"}"#, &[("a", "1"), ("b", "2")]),
            ("unsorted", r#"{"b":"2","a":"1"}"#, &[("a", "1"), ("b", "2")]),
            ("twice", r#"{"b":"2","a":"1","b":"3"}"#, &[("a", "1"), ("b", "3")]),
            ("odd", r#"{"":null,"\u0000":"é","a":""}"#, &[("", ""), ("\0", "é"), ("a", "")]),
        ];
        for (name, text, expected) in cases {
            let read: Labels = serde_json::from_str(text).unwrap();
            assert_eq!(read.iter().collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(read, labels(expected), "{name}");
            assert_eq!(read.is_empty(), expected.is_empty(), "{name}");
            for (key, value) in expected {
                assert_eq!(read.get(key), Some(*value), "{name}");
            }
            assert_eq!(read.get("c"), None, "{name}");
        }
        let many = labels(&[("a", &long), (&long, "b"), ("c", "d")]);
        assert_eq!(many.get("a"), Some(long.as_str()));
        assert_eq!(many.get(&long), Some("b"));
        assert_eq!(many.get("c"), Some("d"));
        assert!(serde_json::from_str::<Labels>(r#"{"a":1}"#).is_err());
        assert!(serde_json::from_str::<Labels>(r#"["a"]"#).is_err());
    }

    #[test]
    fn a_subset_has_every_pair_of_it_in_the_other() {
        let all = labels(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let cases: [(&[(&str, &str)], bool); 7] = [
            (&[], true),
            (&[("a", "1")], true),
            (&[("a", "1"), ("c", "3")], true),
            (&[("b", "3")], false),
            (&[("aa", "1")], false),
            (&[("d", "4")], false),
            (&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")], false),
        ];
        for (pairs, expected) in cases {
            assert_eq!(labels(pairs).is_subset(&all), expected, "{pairs:?}");
        }
        assert_eq!(all.with("b", "9"), labels(&[("a", "1"), ("b", "9"), ("c", "3")]));
        assert_eq!(all.with("0", "9").iter().next(), Some(("0", "9")));
    }
}
