//! Reads a node of a [`Tree`] as the value that Kubernetes would read.
//!
//! Any type that can be read from JSON can be read from a manifest in the same way, without an
//! intermediate JSON text or `serde_json::Value`.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor,
};

use super::scalar::Meaning;
use super::tree::{Id, Shape, Tree};

/// The reason why a value is not the one that a reader expected.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    message: String,
    /// The byte offset, in the document's text, of the innermost value that did not fit.
    pub at: Option<usize>,
}

impl de::Error for DecodeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        Self { message, at: None }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (found_in_words(found), in_words(expected));
        Self::custom(format_args!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let fits_not = Self::invalid_type(found, expected);
        Self::custom(format_args!("{fits_not}, which is out of range"))
    }
}

/// The value that was found, in terms of YAML; serde uses terms of Rust.
fn found_in_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        Unexpected::Str(text) => format!("the text {text:?}"),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        other => other.to_string(),
    }
}

/// The expected value, in terms of YAML.
fn in_words(expected: &dyn Expected) -> String {
    let name = expected.to_string();
    match name.as_str() {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" => "a whole number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        _ if name.starts_with("struct ") => "a mapping".to_owned(),
        _ => name,
    }
}

impl Tree<'_> {
    /// Reads the node `id` into any type that JSON can be read into. Strings may borrow from the
    /// tree. The scalars that start at an offset in `placeholders`, in bytes of the document's text,
    /// are read as missing values.
    ///
    /// # Errors
    /// The value does not have the shape that the seed expects.
    pub(crate) fn decode<'de, S: DeserializeSeed<'de>>(
        &'de self,
        id: Id,
        seed: S,
        placeholders: &'de [usize],
    ) -> Result<S::Value, DecodeError> {
        let tree = self;
        seed.deserialize(Node { tree, id, placeholders })
    }

    /// The node `id` as a JSON value, with aliases and merges expanded. Integers keep every digit
    /// up to 64 bits; larger ones become decimal numbers, as in Kubernetes.
    pub fn value(&self, id: Id) -> serde_json::Value {
        // A JSON value accepts every shape that a tree can have.
        let seed = PhantomData::<serde_json::Value>;
        self.decode(id, seed, &[]).unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Node<'de, 't> {
    tree: &'de Tree<'t>,
    id: Id,
    /// The offsets of the scalars that are read as missing values.
    placeholders: &'de [usize],
}

impl<'de, 't: 'de> Node<'de, 't> {
    const fn at(self, id: Id) -> Self {
        Self { id, ..self }
    }

    /// An entry of a mapping. A newtype that reads the name must be `serde(transparent)`.
    fn pair(self, (key, value): (Id, Id)) -> (Cow<'de, str>, Self) {
        let name = self.tree.key_text(key).unwrap_or_default();
        (name, self.at(value))
    }

    fn is_placeholder(&self, id: Id) -> bool {
        let start = self.tree.node(id).start as usize;
        self.placeholders.contains(&start)
    }

    /// Adds the position of `error`, unless a value further inside has already set it.
    fn here(self, mut error: DecodeError) -> DecodeError {
        let start = self.tree.node(self.tree.target(self.id)).start;
        error.at.get_or_insert(start as usize);
        error
    }
}

impl<'de, 't> IntoDeserializer<'de, DecodeError> for Node<'de, 't> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The integer that a decimal number equals: Kubernetes writes 1.0 as 1 before it checks the type
/// of a field. Above 2^53, a decimal number cannot hold every integer.
fn whole(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

impl<'de, 't: 'de> Deserializer<'de> for Node<'de, 't> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let tree = self.tree;
        let id = tree.target(self.id);
        if !matches!(tree.node(id).shape, Shape::Sequence) {
            return self.deserialize_map(visitor);
        }
        let items = tree.children(id).map(|id| self.at(id));
        SeqDeserializer::new(items).deserialize_any(visitor).map_err(|error| self.here(error))
    }

    /// Anything but a list: serde's readers of a struct from a list of its values are not compiled.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let tree = self.tree;
        let id = tree.target(self.id);
        match &tree.node(id).shape {
            Shape::Scalar(_) if self.is_placeholder(id) => visitor.visit_unit(),
            Shape::Scalar(scalar) => match scalar.meaning() {
                Meaning::Null => visitor.visit_unit(),
                Meaning::Bool(value) => visitor.visit_bool(value),
                Meaning::Signed(value) => visitor.visit_i64(value),
                Meaning::Unsigned(value) => visitor.visit_u64(value),
                Meaning::Float(value) => match whole(value) {
                    Some(value) => visitor.visit_i64(value),
                    None => visitor.visit_f64(value),
                },
                Meaning::Text => visitor.visit_borrowed_str(&scalar.text),
            },
            Shape::Sequence => Err(de::Error::invalid_type(Unexpected::Seq, &visitor)),
            Shape::Mapping => {
                let entries = tree.entries(id).into_iter().map(|entry| self.pair(entry));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            // The target of an alias is never an alias.
            Shape::Alias(_) => visitor.visit_unit(),
        }
        .map_err(|error| self.here(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let id = self.tree.target(self.id);
        match &self.tree.node(id).shape {
            Shape::Scalar(scalar)
                if scalar.meaning() == Meaning::Null || self.is_placeholder(id) =>
            {
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let scalar = self.tree.node(self.tree.target(self.id)).shape.scalar();
        match scalar {
            Some(scalar) if scalar.meaning() == Meaning::Text => {
                BorrowedStrDeserializer::new(&scalar.text).deserialize_enum(name, variants, visitor)
            }
            _ => Err(de::Error::custom(format_args!("expected one of the words {variants:?}"))),
        }
        .map_err(|error| self.here(error))
    }

    /// A struct must be a mapping; serde would also accept a list of its values.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct identifier
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use serde_json::json;

    use super::super::tree::Tree;

    fn value(text: &str) -> serde_json::Value {
        let tree = Tree::parse(text).unwrap().unwrap();
        tree.value(tree.root())
    }

    #[test]
    fn documents_mean_what_sigs_k8s_io_yaml_gives() {
        let table = [
            ("octal", "mode: 0755", json!({"mode": 493})),
            ("quoted", "mode: '0755'", json!({"mode": "0755"})),
            ("tagged string", "a: !!str 0755", json!({"a": "0755"})),
            ("tagged integer", "a: !!int \"0755\"", json!({"a": 493})),
            ("tagged boolean", "a: !!bool \"yes\"", json!({"a": true})),
            ("tagged decimal", "a: !!float 1", json!({"a": 1})),
            (
                "decimal numbers",
                "a: 1.0\nb: 1.5\nc: 1e3\nd: -0.0",
                json!({"a": 1, "b": 1.5, "c": 1000, "d": 0}),
            ),
            (
                "binary",
                "a: !!binary aGk=\nb: !!binary |\n  aG\n  k=\nc: !!binary EM==\nd: !!binary 677D\n",
                json!({"a": "hi", "b": "hi", "c": "\u{10}", "d": "\u{fffd}\u{fffd}\u{fffd}"}),
            ),
            ("a key twice", "a: 1\nb: 2\na: 3\nyes: 1\non: 2", json!({"a": 3, "b": 2, "true": 2})),
            (
                "quoted text that is not indented",
                "a: 'one\ntwo\n\nthree'\nb:\n- c: \"x \\\"\n  y\n z\"\n  d: 1",
                json!({"a": "one two\nthree", "b": [{"c": "x \" y z", "d": 1}]}),
            ),
            ("tag of one's own", "a: !foo 12", json!({"a": "12"})),
            ("timestamp", "a: !!timestamp 2020-01-01", json!({"a": "2020-01-01"})),
            ("nothing", "a:\nb: ~\nc: ''", json!({"a": null, "b": null, "c": ""})),
            (
                "keys",
                "on: 1\n0755: 2\n2020-01-01: 3",
                json!({"true": 1, "493": 2, "2020-01-01": 3}),
            ),
            (
                "decimal keys",
                "1.5: 1\n1e3: 2\n1e77: 3\n1e7: 4",
                json!({"1.5": 1, "1000": 2, ".inf": 3, "1e+07": 4}),
            ),
            ("merge first", "<<: {a: 2, b: 3}\na: 1", json!({"a": 1, "b": 3})),
            ("merge last wins", "a: 1\n<<: {a: 2, b: 3}", json!({"a": 2, "b": 3})),
            ("merge of a list", "<<: [{a: 2}, {a: 3, c: 4}]", json!({"a": 2, "c": 4})),
            ("quoted merge key", "\"<<\": {a: 1}", json!({"<<": {"a": 1}})),
            ("tagged merge key", "!!merge <<: {a: 1}", json!({"a": 1})),
            ("alias", "m: &m {a: 1}\nb: *m", json!({"m": {"a": 1}, "b": {"a": 1}})),
            (
                "merge of an alias",
                "m: &m {a: 1}\nb:\n  <<: *m\n  a: 5",
                json!({"m": {"a": 1}, "b": {"a": 5}}),
            ),
            (
                "largest integers",
                "a: 18446744073709551615\nb: -9223372036854775808",
                json!({"a": u64::MAX, "b": i64::MIN}),
            ),
            (
                "block scalars",
                "a: |\n  x\n  y\nb: >-\n  x\n  y\n",
                json!({"a": "x\ny\n", "b": "x y"}),
            ),
            (
                "JSON",
                r#"{"a": [1, "yes", null, true, 1.5e3, "\u00e9\n"]}"#,
                json!({"a": [1, "yes", null, true, 1500, "é\n"]}),
            ),
            ("explicit document", "--- # one\na: 1\n...\n", json!({"a": 1})),
        ];
        for (name, text, expected) in table {
            assert_eq!(value(text), expected, "{name}");
        }
    }

    #[test]
    fn a_place_that_is_left_blank_says_nothing() {
        let text = "a: ${A}\nb: {c: 1}\nd: ${A}";
        let tree = Tree::parse(text).unwrap().unwrap();
        let seed = PhantomData::<serde_json::Value>;
        let value = tree.decode(tree.root(), seed, &[3]).unwrap();
        assert_eq!(value, json!({"a": null, "b": {"c": 1}, "d": "${A}"}));
    }

    #[test]
    fn every_place_is_the_one_in_the_text() {
        let text = "a: 'one\ntwo'\nb: [c,\n  d]\n";
        let tree = Tree::parse(text).unwrap().unwrap();
        let written = |at: usize| {
            let node = tree.node(u32::try_from(at).unwrap());
            &text[node.start as usize..node.end as usize]
        };
        let all: Vec<&str> = (1..7).map(written).collect();
        assert_eq!(all, ["a", "'one\ntwo'", "b", "[c,\n  d]", "c", "d"]);
    }

    #[test]
    fn types_read_from_json_read_from_yaml() {
        #[derive(serde::Deserialize, Debug, PartialEq)]
        #[serde(rename_all = "camelCase")]
        struct Claim<'t> {
            name: &'t str,
            access_modes: Vec<Mode>,
            volume: Option<String>,
            replicas: Option<u32>,
        }
        #[derive(serde::Deserialize, Debug, PartialEq)]
        enum Mode {
            ReadWriteOnce,
        }
        let text =
            "name: data\naccessModes: [ReadWriteOnce]\nvolume: ~\nreplicas: 0x10\nextra: {a: 1}";
        let tree = Tree::parse(text).unwrap().unwrap();
        let claim: Claim<'_> = tree.decode(tree.root(), PhantomData, &[]).unwrap();
        assert_eq!(
            claim,
            Claim {
                name: "data",
                access_modes: vec![Mode::ReadWriteOnce],
                volume: None,
                replicas: Some(16),
            }
        );
    }

    #[test]
    fn a_wrong_shape_is_an_error_in_words_of_yaml() {
        #[derive(serde::Deserialize, Debug)]
        #[expect(dead_code, reason = "only read")]
        struct Object {
            name: String,
            #[serde(default)]
            count: u8,
            #[serde(default)]
            inner: Option<Box<Object>>,
            #[serde(default)]
            all: Vec<bool>,
        }
        let table = [
            ("- web", "expected a mapping, found a list", 0),
            ("web", "expected a mapping, found the text \"web\"", 0),
            ("name: [a]", "expected a string, found a list", 6),
            ("name: null", "expected a string, found null", 6),
            ("name: {a: b}", "expected a string, found a mapping", 6),
            ("name: a\ncount: many", "expected a whole number, found the text \"many\"", 15),
            (
                "name: a\ncount: 300",
                "expected a whole number, found the number 300, which is out of range",
                15,
            ),
            ("name: a\ninner: {name: 1.5}", "expected a string, found the number 1.5", 22),
            ("name: a\ninner: [b]", "expected a mapping, found a list", 15),
            ("name: a\nall: {b: c}", "expected a list, found a mapping", 13),
            ("name: a\nall: [3]", "expected a boolean, found the number 3", 14),
        ];
        for (text, message, at) in table {
            let tree = Tree::parse(text).unwrap().unwrap();
            let seed = PhantomData::<Object>;
            let error = tree.decode(tree.root(), seed, &[]).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
            assert_eq!(error.at, Some(at), "{text}");
        }
    }
}
