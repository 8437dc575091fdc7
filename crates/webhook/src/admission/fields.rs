//! The fields of a JSON object, each as it is written.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A comparison of the names of fields.
pub(super) type Same = fn(&str, &str) -> bool;

/// Compares as Kubernetes compares the fields of its objects (`sigs.k8s.io/json`).
pub(super) fn exactly(name: &str, key: &str) -> bool {
    name == key
}

/// Compares as Go's `encoding/json` does: in any case, including the two letters outside of ASCII
/// that Unicode folds into it (`foldRune`).
pub(super) fn in_any_case(name: &str, key: &str) -> bool {
    const fn folded(letter: char) -> char {
        match letter {
            '\u{17F}' => 's',
            '\u{212A}' => 'k',
            other => other.to_ascii_lowercase(),
        }
    }
    name.chars().map(folded).eq(key.chars().map(folded))
}

/// Reads the fields of these names. If a name occurs twice, the last field counts.
pub(super) struct Fields<'n, const N: usize>(pub(super) &'n [&'static str; N], pub(super) Same);

/// The values of the fields, in the order of their names. As in Go, `null` is no value.
pub(super) type Found<'de, const N: usize> = [Option<&'de RawValue>; N];

impl<const N: usize> Fields<'_, N> {
    /// The fields of the object in `json`.
    ///
    /// # Errors
    /// Fails if it is not an object.
    pub(super) fn find_in<'de>(
        self,
        json: Option<&'de RawValue>,
    ) -> serde_json::Result<Found<'de, N>> {
        match json {
            Some(json) => serde_json::Deserializer::from_str(json.get()).deserialize_map(self),
            None => Ok([None; N]),
        }
    }
}

impl<'de, const N: usize> Visitor<'de> for Fields<'_, N> {
    type Value = Found<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(at) = map.next_key_seed(Name(self.0, self.1))? {
            match at {
                Some(at) => found[at] = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// Reads a key as its position among these names.
pub(super) struct Name<'n>(pub(super) &'n [&'static str], pub(super) Same);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let Self(names, same) = self;
        let exact = names.iter().position(|name| *name == key);
        Ok(exact.or_else(|| names.iter().position(|name| same(name, key))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_field_of_a_name_counts() {
        let read = |json: &str, same| {
            let raw: Option<&RawValue> = serde_json::from_str(json).ok()?;
            let found = Fields(&["ask", "b"], same).find_in(raw).ok()?;
            Some(found.map(|field| field.map_or("", RawValue::get).to_owned()))
        };
        let cases = [
            (r#"{"b":[1, 2],"c":3}"#, ["", "[1, 2]"], ["", "[1, 2]"]),
            (r#"{"ask":1,"b":2,"ask":null}"#, ["", "2"], ["", "2"]),
            (r#"{"ask":1,"ASK":2}"#, ["1", ""], ["2", ""]),
            (r#"{"Ask":1,"ask":2}"#, ["2", ""], ["2", ""]),
            (r#"{"a\u017F\u212a":1}"#, ["", ""], ["1", ""]),
            (r#"{"\u0061sk":1}"#, ["1", ""], ["1", ""]),
            ("null", ["", ""], ["", ""]),
        ];
        for (json, exact, folded) in cases {
            assert_eq!(read(json, exactly).unwrap(), exact, "{json}");
            assert_eq!(read(json, in_any_case).unwrap(), folded, "{json}");
        }
        for json in ["[]", "1", r#""ask""#] {
            assert_eq!(read(json, exactly), None, "{json}");
        }
    }
}
