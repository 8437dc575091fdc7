//! Labels, packed.

use std::cmp::Ordering;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor,
};

use super::Text;

/// Keys with values, sorted by key, as in labels, annotations and parameters.
///
/// All of them lie in one piece of memory: for each pair the key's length, the
/// key, the value's length and the value. A cluster has far more labels than
/// anything else, and most of them share no text worth sharing.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[u8]>);

impl Labels {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs()
            .find(|(candidate, _)| *candidate == key.as_bytes())
            .map(|(_, value)| text(value))
    }

    /// Every key with its value, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.pairs().map(|(key, value)| (text(key), text(value)))
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every pair of these labels is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut others = other.pairs();
        self.pairs().all(|(key, value)| {
            others
                .find_map(|(candidate, held)| match candidate.cmp(key) {
                    Ordering::Less => None,
                    Ordering::Equal => Some(held == value),
                    Ordering::Greater => Some(false),
                })
                .unwrap_or(false)
        })
    }

    /// These labels with `key` set to `value`.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> Self {
        self.iter()
            .filter(|(candidate, _)| *candidate != key)
            .chain([(key, value)])
            .collect()
    }

    fn pairs(&self) -> Packed<'_> {
        Packed(&self.0)
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<Text>, V: Into<Text>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut packer = Packer::default();
        for (key, value) in pairs {
            packer.push_key(&key.into());
            packer.push_value(&value.into());
        }
        packer.labels()
    }
}

/// Walks packed pairs. Anything but what [`Packer`] writes ends the walk.
#[derive(Clone)]
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    /// A length, seven bits a byte, and so many bytes.
    fn part(&mut self) -> Option<&'a [u8]> {
        let mut length = 0_usize;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            length |= usize::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
        }
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }
}

impl<'a> Iterator for Packed<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.part()?, self.part()?))
    }
}

/// What was text when it was packed is text still.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Packs pairs as they come. The API server sends them sorted; others are
/// sorted at the end.
#[derive(Default)]
struct Packer {
    bytes: Vec<u8>,
    /// Where the last key stands.
    last: std::ops::Range<usize>,
    unsorted: bool,
}

impl Packer {
    /// A guess at a handful of labels: one allocation instead of six.
    const FIRST_CAPACITY: usize = 192;

    fn push_key(&mut self, key: &str) {
        let first = self.bytes.is_empty();
        if first {
            self.bytes.reserve(Self::FIRST_CAPACITY);
        }
        let key = self.push(key);
        let order = self.bytes[self.last.clone()].cmp(&self.bytes[key.clone()]);
        self.unsorted |= !first && order != Ordering::Less;
        self.last = key;
    }

    fn push_value(&mut self, value: &str) {
        self.push(value);
    }

    fn push(&mut self, text: &str) -> std::ops::Range<usize> {
        let mut length = text.len();
        while length > 0x7F {
            self.bytes.push((length & 0x7F) as u8 | 0x80);
            length >>= 7;
        }
        self.bytes.push(length as u8);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        start..self.bytes.len()
    }

    fn labels(self) -> Labels {
        if !self.unsorted {
            return Labels(self.bytes.into_boxed_slice());
        }
        let mut pairs: Vec<_> = Packed(&self.bytes).collect();
        pairs.sort_by_key(|(key, _)| *key);
        pairs.dedup_by_key(|(key, _)| *key);
        let mut sorted = Self::default();
        for (key, value) in pairs {
            sorted.push_key(text(key));
            sorted.push_value(text(value));
        }
        Labels(sorted.bytes.into_boxed_slice())
    }
}

impl serde::Serialize for Labels {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Pairs(|_: &str| true))
    }
}

/// Reads a map of strings but keeps only the keys that `keep` wants; the
/// others are skipped unread, however long they are.
pub(crate) fn filtered<'de, D: Deserializer<'de>>(
    deserializer: D,
    keep: fn(&str) -> bool,
) -> Result<Labels, D::Error> {
    deserializer.deserialize_any(Pairs(keep))
}

struct Pairs<F>(F);

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for Pairs<F> {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_unit<E>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut packer = Packer::default();
        while let Some(kept) = map.next_key_seed(Key(&mut packer, &self.0))? {
            if kept {
                map.next_value_seed(Value(&mut packer))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(packer.labels())
    }
}

/// Packs a key where it is wanted, and says whether it was.
struct Key<'a, F>(&'a mut Packer, &'a F);

impl<'de, F: Fn(&str) -> bool> DeserializeSeed<'de> for Key<'_, F> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<F: Fn(&str) -> bool> Visitor<'_> for Key<'_, F> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        let kept = self.1(key);
        if kept {
            self.0.push_key(key);
        }
        Ok(kept)
    }
}

/// Packs a value; `null` is the same as nothing.
struct Value<'a>(&'a mut Packer);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_str("")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.visit_str("")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.0.push_value(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().copied().collect()
    }

    #[test]
    fn labels_are_sorted_and_the_first_of_a_key_stays() {
        let long = "x".repeat(70_000);
        type Case = (
            &'static str,
            &'static str,
            &'static [(&'static str, &'static str)],
        );
        let cases: [Case; 6] = [
            ("empty", "{}", &[]),
            ("null", "null", &[]),
            ("sorted", r#"{"a":"1","b":"2"}"#, &[("a", "1"), ("b", "2")]),
            (
                "unsorted",
                r#"{"b":"2","a":"1"}"#,
                &[("a", "1"), ("b", "2")],
            ),
            (
                "twice",
                r#"{"b":"2","a":"1","b":"3"}"#,
                &[("a", "1"), ("b", "2")],
            ),
            (
                "odd",
                r#"{"":null,"\u0000":"é","a":""}"#,
                &[("", ""), ("\0", "é"), ("a", "")],
            ),
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
        assert_eq!(
            all.with("b", "9"),
            labels(&[("a", "1"), ("b", "9"), ("c", "3")])
        );
        assert_eq!(all.with("0", "9").iter().next(), Some(("0", "9")));
    }
}
