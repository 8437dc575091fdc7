//! Reading JSON of which most is not wanted.
//!
//! The larger part of a review is read by nobody: containers, annotations, `managedFields`.
//! serde_json checks every token of it; here only its end is looked for (see
//! [`super::skip`]). What is wanted is read as serde_json reads it, and numbers and escaped
//! text by serde_json itself.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Result};

use super::skip::{Closed, after_text, after_value};

/// As deep as serde_json reads.
const DEEPEST: u8 = 127;

/// A value, and whether it is whole.
pub(super) struct Read<T> {
    pub(super) value: T,
    /// Whether lists end before their end, as there was no room for more.
    pub(super) is_cut: bool,
}

/// Reads a value that is the whole of `text`. The entries of its lists may take `room` bytes
/// in memory all in all, which of `{}` can be a hundred times what they take as text.
///
/// # Errors
/// When it is not JSON or not of that shape, without a word on where; and also where a
/// `RawValue` or an enum is wanted, and for a list in place of a struct. Of a list or an
/// object that is not wanted, only quotation marks and brackets must match.
pub(super) fn read<'de, T: Deserialize<'de>>(text: &'de str, room: usize) -> Result<Read<T>> {
    let mut reader = Reader {
        text,
        at: 0,
        deeper: DEEPEST,
        room,
        is_cut: false,
    };
    let value = T::deserialize(&mut reader)?;
    match reader.peek() {
        None => Ok(Read {
            value,
            is_cut: reader.is_cut,
        }),
        Some(_) => Err(unexpected()),
    }
}

#[cold]
fn unexpected() -> Error {
    Error::custom("unexpected JSON")
}

struct Reader<'de> {
    text: &'de str,
    /// The next byte to read, always where a character begins.
    at: usize,
    /// How many more levels of lists and objects there may be.
    deeper: u8,
    /// How many more bytes entries of lists may take.
    room: usize,
    is_cut: bool,
}

impl<'de> Reader<'de> {
    /// The next byte that is not space; it is not read yet.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        match self.text.as_bytes().get(self.at) {
            // API servers write no space.
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_behind_space(),
        }
    }

    #[cold]
    fn peek_behind_space(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek() != Some(byte) {
            return Err(unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(unexpected());
        }
        self.at += word.len();
        Ok(())
    }

    /// The text that begins here, without its quotation marks, where there is no escape in it.
    #[inline]
    fn plain(&mut self) -> Result<Option<&'de str>> {
        let start = self.at + 1;
        match after_text(self.text.as_bytes(), start) {
            Some(Closed { end, plain }) => {
                self.at = end;
                Ok(plain.then(|| &self.text[start..end - 1]))
            }
            None => Err(unexpected()),
        }
    }

    #[inline]
    fn text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let start = self.at;
        match self.plain()? {
            Some(plain) => visitor.visit_borrowed_str(plain),
            None => self.escaped(start, visitor),
        }
    }

    #[cold]
    fn escaped<V: Visitor<'de>>(&self, start: usize, visitor: V) -> Result<V::Value> {
        serde_json::Deserializer::from_str(&self.text[start..self.at]).deserialize_str(visitor)
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        while let Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') = bytes.get(self.at) {
            self.at += 1;
        }
        let mut number = serde_json::Deserializer::from_str(&self.text[start..self.at]);
        let value = number.deserialize_any(visitor)?;
        number.end()?;
        Ok(value)
    }

    #[inline]
    fn map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        self.within(b'}', |reader| visitor.visit_map(Items::of(reader)))
    }

    #[inline]
    fn seq<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        self.within(b']', |reader| visitor.visit_seq(Items::of(reader)))
    }

    /// Reads what stands between two brackets.
    #[inline]
    fn within<T>(&mut self, end: u8, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.at += 1;
        self.deeper = self.deeper.checked_sub(1).ok_or_else(unexpected)?;
        let value = read(self)?;
        self.deeper += 1;
        self.expect(end)?;
        Ok(value)
    }
}

/// Methods that read one shape, and begin with one byte: code for all the others would stand
/// between what is read.
macro_rules! of_one_shape {
    ($($method:ident($($name:ident: $type:ty),*) $first:literal $read:ident;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value> {
            match self.peek() {
                Some($first) => self.$read(visitor),
                _ => Err(unexpected()),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.peek() {
            Some(b'"') => self.text(visitor),
            Some(b'{') => self.map(visitor),
            Some(b'[') => self.seq(visitor),
            Some(b'n') => {
                self.word("null")?;
                visitor.visit_unit()
            }
            Some(b't') => {
                self.word("true")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.word("false")?;
                visitor.visit_bool(false)
            }
            Some(b'-' | b'0'..=b'9') => self.number(visitor),
            _ => Err(unexpected()),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.peek() == Some(b'n') {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.peek();
        self.at = after_value(self.text.as_bytes(), self.at).ok_or_else(unexpected)?;
        visitor.visit_unit()
    }

    of_one_shape! {
        deserialize_str() b'"' text;
        deserialize_string() b'"' text;
        deserialize_identifier() b'"' text;
        deserialize_seq() b'[' seq;
        deserialize_map() b'{' map;
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]) b'{' map;
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit unit_struct tuple tuple_struct enum
    }
}

/// What stands between two brackets, with commas in between.
struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    is_first: bool,
}

impl<'r, 'de> Items<'r, 'de> {
    fn of(reader: &'r mut Reader<'de>) -> Self {
        Self {
            reader,
            is_first: true,
        }
    }

    /// Whether there is one more, which then is next.
    #[inline]
    fn go_on(&mut self, end: u8) -> Result<bool> {
        let next = self.reader.peek();
        if next == Some(end) {
            return Ok(false);
        }
        if self.is_first {
            self.is_first = false;
            return Ok(true);
        }
        self.reader.expect(b',')?;
        Ok(true)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if !self.go_on(b']')? {
            return Ok(None);
        }
        match self.reader.room.checked_sub(size_of::<T::Value>()) {
            Some(room) => {
                self.reader.room = room;
                seed.deserialize(&mut *self.reader).map(Some)
            }
            None => self.cut(),
        }
    }
}

impl Items<'_, '_> {
    /// Passes over what is left of a list.
    #[cold]
    fn cut<T>(&mut self) -> Result<Option<T>> {
        self.reader.is_cut = true;
        loop {
            IgnoredAny::deserialize(&mut *self.reader)?;
            if !self.go_on(b']')? {
                return Ok(None);
            }
        }
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.go_on(b'}')? {
            return Ok(None);
        }
        match self.reader.peek() {
            Some(b'"') => seed.deserialize(&mut *self.reader).map(Some),
            _ => Err(unexpected()),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::sample::Index;
    use serde::Deserialize;
    use serde_json::Value;

    use super::super::skip::samples::any_json;
    use super::*;

    fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T> {
        super::read(text, usize::MAX).map(|read| read.value)
    }

    /// What serde_json reads, where it reads anything.
    fn expected(text: &str) -> Option<Value> {
        serde_json::from_str(text).ok()
    }

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn whatever_is_read_is_what_serde_json_reads() {
        let (deepest, too_deep) = (nested(127), nested(128));
        let valid = [
            r#" {"a" : [ 1 , -2.5e3, true, false, null, "b\n\u00e9" ] , "c":{} } "#,
            r#"{"a":1,"a":2}"#,
            r#""""#,
            "[]",
            "-0",
            "18446744073709551615",
            &deepest,
        ];
        for text in valid {
            assert!(expected(text).is_some(), "{text}");
            assert_eq!(read::<Value>(text).ok(), expected(text), "{text}");
        }
        let invalid = [
            "",
            "{",
            "[1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{1:1}"#,
            r#"{"a":1]"#,
            r#"{"a":1} 1"#,
            r#""\u12""#,
            r#""\ud800""#,
            r#""\é""#,
            "\"\n\"",
            r#"""#,
            r#""\"#,
            "01",
            "1.",
            "1-1",
            "1e999",
            "nul",
            "nulll",
            "tru",
            &too_deep,
        ];
        for text in invalid {
            assert_eq!(expected(text), None, "{text}");
            assert_eq!(read::<Value>(text).ok(), None, "{text}");
        }
    }

    #[test]
    fn what_nobody_reads_needs_only_to_end() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Wanted {
            b: u8,
        }
        let cases = [
            (r#"{"a":{"x":"}\"","y":[1,{}]},"b":1}"#, Some(1)),
            (r#"{"b":1,"a":"\u005d]"}"#, Some(1)),
            (r#"{"a":[tru,1],"b":1}"#, Some(1)),
            (r#"{"a":null,"b":1,"c":-1.5e3}"#, Some(1)),
            (r#"{"a":[1,"b":1}"#, None),
            (r#"{"a":"b":1}"#, None),
            (r#"{"a":,"b":1}"#, None),
            (r#"{"a":x,"b":1}"#, None),
            (r#"{"a":n":0,"b":1}"#, None),
        ];
        for (text, b) in cases {
            assert_eq!(read::<Wanted>(text).ok(), b.map(|b| Wanted { b }), "{text}");
        }
    }

    #[test]
    fn another_shape_than_the_wanted_one_is_an_error() {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wanted {
            list: Vec<String>,
            map: BTreeMap<String, u8>,
            inner: Option<Box<Wanted>>,
            truth: bool,
        }
        let cases = [
            (r#"{"list":[],"map":{},"inner":{},"truth":true}"#, true),
            (
                r#"{ "list" : [ "a" ] , "map" : { "a" : 1 } , "inner" : null }"#,
                true,
            ),
            (r#"{"list":{}}"#, false),
            (r#"{"list":[1]}"#, false),
            (r#"{"list":null}"#, false),
            (r#"{"map":[]}"#, false),
            (r#"{"map":{"a":"1"}}"#, false),
            (r#"{"inner":[]}"#, false),
            (r#"{"inner":"a"}"#, false),
            (r#"{"truth":1}"#, false),
            (r#"[[],{},{},true]"#, false),
            (r#""a""#, false),
        ];
        for (text, expected) in cases {
            assert_eq!(read::<Wanted>(text).is_ok(), expected, "{text}");
        }
    }

    #[test]
    fn lists_take_as_much_room_as_there_is() {
        #[derive(Deserialize)]
        struct Wanted {
            a: Vec<u64>,
            b: u8,
        }
        let text = r#"{"a":[1,2,3],"x":["y","y"],"b":4}"#;
        for (room, kept) in [(0, 0), (8, 1), (16, 2), (23, 2), (24, 3), (100, 3)] {
            let Read { value, is_cut } = super::read::<Wanted>(text, room).unwrap();
            assert_eq!((value.a.len(), value.b), (kept, 4), "{room}");
            assert_eq!(is_cut, kept < 3, "{room}");
        }
        assert!(super::read::<Wanted>(r#"{"a":[1,2,3,],"b":4}"#, 8).is_err());
        assert!(super::read::<Wanted>(r#"{"a":[1,2"#, 8).is_err());
    }

    proptest! {
        #[test]
        fn json_is_read_as_serde_json_reads_it(
            value in any_json(),
            is_spaced in any::<bool>(),
            changes in prop::collection::vec((any::<Index>(), r#"[ \n{}\[\]",:\\0-9a-fntu.é-]?"#), 0..3),
        ) {
            let mut text = match is_spaced {
                true => format!("{value:#}"),
                false => value.to_string(),
            };
            prop_assert_eq!(read::<Value>(&text).ok(), Some(value));
            prop_assert!(read::<IgnoredAny>(&text).is_ok());
            for (at, change) in changes {
                let places: Vec<_> = text.char_indices().collect();
                if let Some((at, old)) = places.get(at.index(places.len().max(1))) {
                    text.replace_range(*at..at + old.len_utf8(), &change);
                }
            }
            prop_assert_eq!(read::<Value>(&text).ok(), expected(&text), "{}", text);
        }
    }
}
