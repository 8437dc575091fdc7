//! A bound on the memory for lists.
//!
//! An entry `{}` of a list can take a hundred times as much memory as its text.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The bytes that entries of lists may take in memory.
#[derive(Clone, Debug)]
pub struct ListRoom {
    left: Cell<usize>,
    is_short: Cell<bool>,
}

impl ListRoom {
    /// Room for this many bytes.
    pub const fn new(bytes: usize) -> Self {
        Self { left: Cell::new(bytes), is_short: Cell::new(false) }
    }

    /// Room for every list.
    pub const fn endless() -> Self {
        Self::new(usize::MAX)
    }

    /// Whether a list was cut because there was no room for all entries.
    pub const fn is_short(&self) -> bool {
        self.is_short.get()
    }
}

/// A deserializer or a visitor whose lists take their memory from the room.
pub(super) struct Bounded<'r, T>(pub(super) T, pub(super) &'r ListRoom);

/// Reads an object from JSON: a struct only from a JSON object, never from a list of its values.
///
/// # Errors
/// The text is not JSON, or a field does not have the type that it has in the API.
pub fn from_json<'de, T: Deserialize<'de>>(json: &'de str) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_str(json);
    let value = T::deserialize(Bounded(&mut json, &ListRoom::endless()))?;
    json.end().map(|()| value)
}

/// Methods whose visitor may see a list, and those whose visitor sees a single value.
macro_rules! forward {
    ($($nested:ident)*; $($single:ident)*) => {
        $(#[inline]
        fn $nested<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$nested(Bounded(visitor, self.1))
        })*
        $(#[inline]
        fn $single<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$single(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_option deserialize_seq deserialize_map;
        deserialize_bool deserialize_i64 deserialize_u64 deserialize_f64 deserialize_str
        deserialize_string deserialize_identifier deserialize_ignored_any
    }

    /// Reads only an object: serde would read a struct from a list of its values too.
    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.deserialize_map(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 char bytes byte_buf
        unit unit_struct tuple tuple_struct
    }
}

macro_rules! visit {
    ($($method:ident($($value:ident: $type:ty)?))*) => {$(
        #[inline]
        fn $method<E: serde::de::Error>(self, $($value: $type)?) -> Result<V::Value, E> {
            self.0.$method($($value)?)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool(value: bool) visit_i64(value: i64) visit_u64(value: u64)
        visit_f64(value: f64) visit_str(value: &str) visit_borrowed_str(value: &'de str)
        visit_string(value: String) visit_none() visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Bounded(deserializer, self.1))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Bounded(seq, self.1))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Bounded(map, self.1))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Bounded(deserializer, self.1))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let size = size_of::<S::Value>();
        let Some(left) = self.1.left.get().checked_sub(size) else {
            while self.0.next_element::<IgnoredAny>()?.is_some() {
                self.1.is_short.set(true);
            }
            return Ok(None);
        };
        self.1.left.set(left);
        let entry = self.0.next_element_seed(Bounded(seed, self.1))?;
        if entry.is_none() {
            self.1.left.set(left + size);
        }
        Ok(entry)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Bounded(seed, self.1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::object::ObjectKind;
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Wanted {
        list: Vec<u64>,
        inner: Option<Box<Wanted>>,
        map: BTreeMap<String, Vec<u64>>,
        truth: bool,
    }

    fn read(json: &str, room: &ListRoom) -> serde_json::Result<Wanted> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let wanted = Wanted::deserialize(Bounded(&mut deserializer, room))?;
        deserializer.end()?;
        Ok(wanted)
    }

    #[test]
    fn lists_take_as_much_room_as_there_is() {
        // A skipped entry takes no room.
        let json =
            r#"{"list":[1,2],"x":["y","y"],"inner":{"list":[3]},"map":{"a":[4,5]},"truth":true}"#;
        for (entries, list, inner, map) in [(5, 2, 1, 2), (4, 2, 1, 1), (2, 2, 0, 0), (0, 0, 0, 0)]
        {
            // Room for a part of another entry changes nothing.
            for rest in [0, 7] {
                let room = ListRoom::new(entries * 8 + rest);
                let read = read(json, &room).unwrap();
                let lengths =
                    (read.list.len(), read.inner.unwrap().list.len(), read.map["a"].len());
                assert_eq!(lengths, (list, inner, map), "{entries}");
                assert!(read.truth);
                assert_eq!(room.is_short(), entries < 5, "{entries}");
            }
        }
    }

    #[test]
    fn words_of_objects_are_read_too() {
        let terms = r#"[{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}]"#;
        for (kind, spec) in [
            (
                ObjectKind::Claim,
                r#""spec":{"accessModes":["ReadWriteOnce"],"volumeMode":"Block"},"status":{"phase":"Lost"}"#.to_owned(),
            ),
            (
                ObjectKind::Volume,
                format!(r#""spec":{{"volumeMode":"Block","nodeAffinity":{{"required":{{"nodeSelectorTerms":{terms}}}}}}}"#),
            ),
            (
                ObjectKind::StorageClass,
                r#""provisioner":"p","volumeBindingMode":"WaitForFirstConsumer""#.to_owned(),
            ),
            (
                ObjectKind::Node,
                r#""spec":{"taints":[{"key":"k","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}"#.to_owned(),
            ),
        ] {
            let json = format!(r#"{{"metadata":{{"name":"n"}},{spec}}}"#);
            let read = kind.read(&json, &ListRoom::endless()).unwrap();
            let expected = kind.deserialize(&mut serde_json::Deserializer::from_str(&json));
            assert_eq!(read, expected.unwrap(), "{json}");
            let nothing = kind.read(r#"{"metadata":{"name":"n"}}"#, &ListRoom::endless());
            assert!(nothing.is_ok_and(|nothing| nothing != read), "{json}");
        }
    }

    #[test]
    fn what_is_read_is_what_serde_json_reads() {
        for json in [
            r#"{"list":[1],"inner":null,"map":{},"truth":false}"#,
            r#"{"list":null}"#,
            r#"{"list":[-1]}"#,
            r#"{"list":[1.5]}"#,
            r#"{"list":[1,]}"#,
            r#"{"map":[]}"#,
            r#"{"truth":1}"#,
            r#"{"list":[],"list":[]}"#,
            r#"{"list":[1"#,
            r#""a""#,
        ] {
            let expected = serde_json::from_str::<Wanted>(json);
            match (read(json, &ListRoom::new(1000)), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{json}"),
                (Err(read), Err(expected)) => {
                    assert_eq!(read.to_string(), expected.to_string(), "{json}");
                }
                (read, expected) => panic!("{json}: {read:?} {expected:?}"),
            }
        }
        for list in ["[[],null,{},true]", r#"{"inner":[]}"#] {
            assert!(serde_json::from_str::<Wanted>(list).is_ok());
            assert!(read(list, &ListRoom::new(8)).is_err());
        }
        assert!(read(r#"{"list":[1,2,]}"#, &ListRoom::new(8)).is_err());
        assert!(read(r#"{"list":[1,2"#, &ListRoom::new(8)).is_err());
    }
}
