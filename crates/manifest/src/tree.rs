//! One YAML document as a tree that records the position of every node.
//!
//! The same tree gives the object its meaning ([`super::decode`]), a field its line
//! ([`super::locate`]) and an edit its place ([`super::edit`]), so the three cannot disagree. The
//! nodes are in one vector, parents before children. Scalars borrow from the text unless an escape
//! had to be decoded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use granit_parser::ScalarStyle;

use super::position::Lines;
use super::scalar::{self, Meaning};

/// The index of a node in its [`Tree`].
pub(crate) type Id = u32;

/// One YAML document.
#[derive(Debug)]
pub struct Tree<'t> {
    /// The text to which the offsets of the nodes refer.
    pub(super) text: &'t str,
    pub(super) nodes: Vec<Node<'t>>,
    pub(super) lines: OnceLock<Lines<'t>>,
}

/// A key that a mapping sets more than once. As in Kubernetes' YAML reader, the
/// last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated {
    /// The key that is ignored.
    pub first: Id,
    /// The key that takes its place.
    pub second: Id,
}

/// One value, or one key, of a document. Offsets are bytes of the document's text.
#[derive(Debug)]
pub struct Node<'t> {
    /// The shape of the node and its content.
    pub shape: Shape<'t>,
    /// The start of the node's properties (`&anchor`, `!!tag`); equal to `start` if it has none.
    pub properties: u32,
    /// The start of the node's own text.
    pub start: u32,
    /// The end of the node's own text, without the comments and blank lines after it.
    pub end: u32,
    /// Whether the node carries an anchor.
    pub anchored: bool,
    /// Whether the node is a collection in brackets or braces: `[…]`, `{…}`.
    pub flow: bool,
    /// Whether the node is a mapping in which an entry may hide another one: it has a `<<` key, or a
    /// key twice.
    pub overlaid: bool,
    /// The index of the first node after this one and everything in it.
    pub(super) after: Id,
}

/// The shape of a node.
#[derive(Debug)]
pub enum Shape<'t> {
    /// A scalar.
    Scalar(Scalar<'t>),
    /// A sequence.
    Sequence,
    /// A mapping.
    Mapping,
    /// `*name`, which stands for the given node.
    Alias(Id),
}

impl<'t> Shape<'t> {
    /// The scalar, if it is one.
    pub(super) fn scalar(&self) -> Option<&Scalar<'t>> {
        match self {
            Self::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }
}

/// A scalar as written.
#[derive(Debug)]
pub struct Scalar<'t> {
    /// The text, with escapes and folding resolved.
    pub text: Cow<'t, str>,
    /// The style in which it was written.
    pub style: ScalarStyle,
    /// The core tag before it.
    pub tag: Tag,
}

/// The core tags that change how a scalar is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// No tag.
    None,
    /// `!!str`, `!!timestamp` or a custom tag: the value is a string.
    Text,
    /// `!!int`, `!!bool` or `!!null`, checked when the tree was built.
    Resolved,
    /// `!!float`: an integer becomes a decimal number.
    Float,
}

impl Scalar<'_> {
    /// The meaning of the scalar in Kubernetes.
    pub(crate) fn meaning(&self) -> Meaning {
        match self.tag {
            Tag::Text => Meaning::Text,
            Tag::None if self.style != ScalarStyle::Plain => Meaning::Text,
            Tag::None | Tag::Resolved => scalar::resolve(&self.text),
            Tag::Float => match scalar::resolve(&self.text) {
                // Kubernetes loses the same digits: there, `!!float 1` is 1.0.
                Meaning::Signed(integer) => Meaning::Float(integer as f64),
                other => other,
            },
        }
    }
}

impl<'t> Tree<'t> {
    /// The lines of the text.
    pub(super) fn lines(&self) -> &Lines<'t> {
        self.lines.get_or_init(|| Lines::of(self.text))
    }

    /// The outermost node.
    pub const fn root(&self) -> Id {
        0
    }

    /// The node at `id`, with aliases not followed.
    pub(crate) fn node(&self, id: Id) -> &Node<'t> {
        &self.nodes[id as usize]
    }

    /// Follows an alias to the node it stands for.
    pub(crate) fn target(&self, id: Id) -> Id {
        match self.node(id).shape {
            Shape::Alias(target) => target,
            _ => id,
        }
    }

    /// The nodes directly inside `id`: items, or keys and values in turn.
    pub fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let end = self.node(id).after;
        let inside = move |next: Id| (next < end).then_some(next);
        std::iter::successors(inside(id + 1), move |child| inside(self.node(*child).after))
    }

    /// The keys and values of the mapping `id` as written; empty for other nodes.
    pub(crate) fn written_entries(&self, id: Id) -> impl Iterator<Item = (Id, Id)> + '_ {
        let is_mapping = matches!(self.node(id).shape, Shape::Mapping);
        let mut children = self.children(id);
        std::iter::from_fn(move || {
            let key = children.next().filter(|_| is_mapping)?;
            Some((key, children.next()?))
        })
    }

    /// The keys and values of the mapping `id`, with aliases followed and `<<` expanded. As in
    /// Kubernetes' YAML reader, a later key or merge overrides an earlier one.
    pub(crate) fn entries(&self, id: Id) -> Vec<(Id, Id)> {
        let id = self.target(id);
        if !self.node(id).overlaid {
            return self.written_entries(id).collect();
        }
        let mut merged = Merged::default();
        self.merge_into(id, &mut merged);
        merged.entries
    }

    /// Merges in the mapping `id`, or each mapping of the list `id`; there, an earlier mapping
    /// overrides a later one.
    fn merge_into(&self, id: Id, into: &mut Merged) {
        let id = self.target(id);
        if matches!(self.node(id).shape, Shape::Sequence) {
            let items: Vec<Id> = self.children(id).collect();
            for item in items.into_iter().rev() {
                self.merge_into(item, into);
            }
        }
        for (key, value) in self.written_entries(id) {
            if self.is_merge_key(key) {
                self.merge_into(value, into);
                continue;
            }
            let name = self.key_text(key).unwrap_or_default().into_owned();
            let place = *into.places.entry(name).or_insert(into.entries.len());
            match into.entries.get_mut(place) {
                Some(entry) => *entry = (key, value),
                None => into.entries.push((key, value)),
            }
        }
    }

    /// Whether `key` is the `<<` that merges in another mapping.
    pub(crate) fn is_merge_key(&self, key: Id) -> bool {
        self.node(key).shape.scalar().is_some_and(|scalar| {
            scalar.style == ScalarStyle::Plain && scalar.tag != Tag::Text && scalar.text == "<<"
        })
    }

    /// The name of a key in the JSON object: `on` becomes `true`, `0755` becomes `493`. `None` for
    /// a key that JSON cannot have.
    pub(crate) fn key_text(&self, key: Id) -> Option<Cow<'_, str>> {
        let scalar = self.node(self.target(key)).shape.scalar()?;
        Some(match scalar.meaning() {
            Meaning::Null => return None,
            Meaning::Text => Cow::Borrowed(scalar.text.as_ref()),
            Meaning::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
            Meaning::Signed(value) => Cow::Owned(value.to_string()),
            Meaning::Unsigned(value) => Cow::Owned(value.to_string()),
            Meaning::Float(value) => Cow::Owned(decimal_key(value)),
        })
    }

    /// The key and the value with the name `name` in the mapping `id`, with aliases and `<<`
    /// followed.
    pub fn entry(&self, id: Id, name: &str) -> Option<(Id, Id)> {
        let id = self.target(id);
        let called = |(key, _): &(Id, Id)| self.key_text(*key).is_some_and(|text| text == name);
        if self.node(id).overlaid {
            self.entries(id).into_iter().find(called)
        } else {
            self.written_entries(id).find(called)
        }
    }

    /// The value at the end of `path`, whose keys are separated with dots, with aliases and `<<`
    /// followed.
    pub(crate) fn at(&self, id: Id, path: &str) -> Option<Id> {
        path.split('.').try_fold(id, |id, name| Some(self.entry(id, name)?.1))
    }

    /// The keys that are set more than once in `id`, in the order of the text, with aliases not
    /// followed.
    pub(crate) fn repeated(&self, id: Id) -> Vec<Repeated> {
        let mut repeated: Vec<Repeated> = (id..self.node(id).after)
            .filter(|node| self.node(*node).overlaid)
            .flat_map(|node| self.repeated_in(node))
            .collect();
        repeated.sort_by_key(|key| key.second);
        repeated
    }

    /// The keys that the mapping `id` itself sets more than once.
    pub(super) fn repeated_in(&self, id: Id) -> Vec<Repeated> {
        let mut keys: Vec<(Cow<'_, str>, Id)> = self
            .written_entries(id)
            .filter(|(key, _)| !self.is_merge_key(*key))
            .filter_map(|(key, _)| Some((self.key_text(key)?, key)))
            .collect();
        // Equal keys are then next to each other, in the order of the text.
        keys.sort_unstable();
        keys.windows(2)
            .filter(|pair| pair[0].0 == pair[1].0)
            .map(|pair| Repeated { first: pair[0].1, second: pair[1].1 })
            .collect()
    }

    /// The scalar that starts at the byte `at` of the text.
    pub(super) fn scalar_at(&self, at: usize) -> Option<&Scalar<'t>> {
        let first = self.nodes.partition_point(|node| (node.start as usize) < at);
        self.nodes[first..]
            .iter()
            .take_while(|node| node.start as usize == at)
            .find_map(|node| node.shape.scalar())
    }

    /// The scalars in `id`, with aliases not followed.
    pub(super) fn scalars(&self, id: Id) -> impl Iterator<Item = &Scalar<'t>> {
        let nodes = &self.nodes[id as usize..self.node(id).after as usize];
        nodes.iter().filter_map(|node| node.shape.scalar())
    }

    /// The sequence with the name `name` in the mapping `id`.
    pub(super) fn sequence(&self, id: Id, name: &str) -> Option<Id> {
        let value = self.target(self.entry(id, name)?.1);
        matches!(self.node(value).shape, Shape::Sequence).then_some(value)
    }

    /// The string with the name `name` in the mapping `id`.
    pub(crate) fn string(&self, id: Id, name: &str) -> Option<&str> {
        let (_, value) = self.entry(id, name)?;
        let scalar = self.node(self.target(value)).shape.scalar()?;
        (scalar.meaning() == Meaning::Text).then_some(&*scalar.text)
    }
}

#[derive(Default)]
struct Merged {
    entries: Vec<(Id, Id)>,
    /// The index of each entry by its name.
    places: HashMap<String, usize>,
}

/// A decimal number as a key: with 32 bits of precision, and with an exponent below 0.0001 and from
/// 1,000,000 on (`FormatFloat` in Go, as sigs.k8s.io/yaml calls it).
fn decimal_key(value: f64) -> String {
    let value = value as f32;
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}
