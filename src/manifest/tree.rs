//! One YAML document as a tree that remembers where everything was written.
//!
//! The same tree gives the object its meaning ([`super::decode`]), a field its
//! line ([`super::locate`]) and an edit its place ([`super::edit`]), so the three
//! cannot disagree. Nodes lie in one vector, parents before children; scalars
//! borrow from the text unless an escape had to be undone.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};

use super::error::{Fault, Problem};
use super::place::line_and_column;
use super::scalar::{self, Meaning};

/// The place of a node in its [`Tree`].
pub type Id = u32;

/// Nodes that aliases may add to a document beyond those written in it. The
/// YAML reader of Kubernetes stops at about the same number.
const MAX_ALIASED_NODES: u64 = 400_000;

/// Levels of nesting, aliases followed.
const MAX_DEPTH: u32 = 200;

/// One YAML document.
#[derive(Debug)]
pub struct Tree<'t> {
    text: &'t str,
    nodes: Vec<Node<'t>>,
}

/// One value, or one key, of a document. Offsets are bytes of the document's text.
#[derive(Debug)]
pub struct Node<'t> {
    /// What the node is.
    pub shape: Shape<'t>,
    /// Where the node's properties (`&anchor`, `!!tag`) start; equals `start` without any.
    pub properties: u32,
    /// Where the node's own text starts.
    pub start: u32,
    /// Where the node's own text ends; comments and blank lines after it are not its own.
    pub end: u32,
    /// Whether the node carries an anchor.
    pub anchored: bool,
    /// The node that follows this one and everything in it.
    after: Id,
}

/// What a node is.
#[derive(Debug)]
pub enum Shape<'t> {
    /// A scalar.
    Scalar(Scalar<'t>),
    /// A sequence; `flow` when written with brackets.
    Sequence {
        /// Written `[…]`.
        flow: bool,
    },
    /// A mapping; `flow` when written with braces.
    Mapping {
        /// Written `{…}`.
        flow: bool,
        /// Has at least one `<<` key.
        merges: bool,
    },
    /// `*name`: stands for the node given.
    Alias(Id),
}

/// A scalar as written.
#[derive(Debug)]
pub struct Scalar<'t> {
    /// The text, escapes and folding undone.
    pub text: Cow<'t, str>,
    /// How it was written.
    pub style: ScalarStyle,
    /// The core tag in front of it.
    pub tag: Tag,
}

/// The core tags that change how a scalar is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// No tag.
    None,
    /// `!!str`, `!!timestamp` or a tag of the user's own: the text stands for itself.
    Text,
    /// `!!int`, `!!bool`, `!!null` or `!!float`, checked when the tree was built.
    Resolved,
    /// `!!float`: an integer becomes a decimal number.
    Float,
}

impl Scalar<'_> {
    /// What the scalar means to Kubernetes.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        match self.tag {
            Tag::Text => Meaning::Text,
            Tag::None if self.style != ScalarStyle::Plain => Meaning::Text,
            Tag::None | Tag::Resolved => scalar::resolve(&self.text),
            Tag::Float => match scalar::resolve(&self.text) {
                // The same loss of digits as in Kubernetes, where `!!float 1` is 1.0.
                Meaning::Signed(integer) => Meaning::Float(integer as f64),
                other => other,
            },
        }
    }
}

impl<'t> Tree<'t> {
    /// Reads the one document in `text`; `None` when there is nothing in it but
    /// comments and markers.
    ///
    /// # Errors
    /// Text that is not YAML, and YAML that Kubernetes would not take as an
    /// object: duplicate keys, keys that are lists, numbers beyond numbers,
    /// aliases that multiply without end.
    pub fn parse(text: &'t str) -> Result<Option<Self>, Fault> {
        let mut options = granit_parser::Options::default();
        options.set_emit_comments(false);
        options.emit_anchor_events = true;
        let mut builder = Builder {
            tree: Self {
                text,
                nodes: Vec::with_capacity(text.len() / 16),
            },
            open: Vec::new(),
            anchors: HashMap::new(),
            total: Weight::default(),
        };
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event.map_err(|error| syntax(&error))?;
            builder.event(event, &span)?;
        }
        let tree = builder.tree;
        if tree.nodes.is_empty() {
            return Ok(None);
        }
        let written = u64::try_from(tree.nodes.len()).unwrap_or(u64::MAX);
        if builder.total.nodes.saturating_sub(written) > MAX_ALIASED_NODES {
            return Err(Fault::new(0, Problem::TooManyAliases));
        }
        Ok(Some(tree))
    }

    /// The text the offsets of the nodes point into.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The outermost node.
    #[must_use]
    pub const fn root(&self) -> Id {
        0
    }

    /// The node at `id`, aliases not followed.
    #[must_use]
    pub fn node(&self, id: Id) -> &Node<'t> {
        &self.nodes[id as usize]
    }

    /// Follows an alias to the node it stands for.
    #[must_use]
    pub fn target(&self, id: Id) -> Id {
        match self.node(id).shape {
            Shape::Alias(target) => target,
            _ => id,
        }
    }

    /// The nodes directly inside `id`: items, or keys and values in turn.
    pub fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let end = self.node(id).after;
        let mut next = id + 1;
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let child = next;
                next = self.node(child).after;
                child
            })
        })
    }

    /// The keys and values as written in the mapping `id`; nothing for other nodes.
    pub fn written_entries(&self, id: Id) -> impl Iterator<Item = (Id, Id)> + '_ {
        let mapping = matches!(self.node(id).shape, Shape::Mapping { .. });
        let mut children = self.children(id);
        std::iter::from_fn(move || {
            if !mapping {
                return None;
            }
            Some((children.next()?, children.next()?))
        })
    }

    /// The keys and values of the mapping `id`, aliases followed and `<<`
    /// expanded. As in Kubernetes' YAML reader, what comes later in the text
    /// wins, be it a key or a merge.
    #[must_use]
    pub fn entries(&self, id: Id) -> Vec<(Id, Id)> {
        let id = self.target(id);
        if !matches!(self.node(id).shape, Shape::Mapping { merges: true, .. }) {
            return self.written_entries(id).collect();
        }
        let mut merged = Merged::default();
        self.merge_into(id, &mut merged);
        merged.entries
    }

    fn merge_into(&self, id: Id, into: &mut Merged) {
        let id = self.target(id);
        for (key, value) in self.written_entries(id) {
            if !self.is_merge_key(key) {
                let name = self.key_text(key).unwrap_or_default().into_owned();
                into.set(name, key, value);
                continue;
            }
            let merged = self.target(value);
            if matches!(self.node(merged).shape, Shape::Sequence { .. }) {
                let items: Vec<Id> = self.children(merged).collect();
                for item in items.into_iter().rev() {
                    self.merge_into(item, into);
                }
            } else {
                self.merge_into(merged, into);
            }
        }
    }

    /// Whether `key` is the `<<` that merges another mapping in.
    #[must_use]
    pub fn is_merge_key(&self, key: Id) -> bool {
        matches!(&self.node(key).shape, Shape::Scalar(scalar)
            if scalar.style == ScalarStyle::Plain && scalar.tag != Tag::Text && scalar.text == "<<")
    }

    /// The name a key has in the JSON object: `on` is `true`, `0755` is `493`.
    /// `None` for a key that JSON cannot have.
    #[must_use]
    pub fn key_text(&self, key: Id) -> Option<Cow<'_, str>> {
        let Shape::Scalar(scalar) = &self.node(self.target(key)).shape else {
            return None;
        };
        Some(match scalar.meaning() {
            Meaning::Null => return None,
            Meaning::Text => Cow::Borrowed(scalar.text.as_ref()),
            Meaning::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
            Meaning::Signed(value) => Cow::Owned(value.to_string()),
            Meaning::Unsigned(value) => Cow::Owned(value.to_string()),
            // Kubernetes writes such keys with 32 bits of precision.
            Meaning::Float(value) => Cow::Owned((value as f32).to_string()),
        })
    }

    /// The key and the value called `name` in the mapping `id`, aliases and `<<` followed.
    #[must_use]
    pub fn entry(&self, id: Id, name: &str) -> Option<(Id, Id)> {
        self.entries(id)
            .into_iter()
            .find(|(key, _)| self.key_text(*key).is_some_and(|text| text == name))
    }

    /// The string called `name` in the mapping `id`.
    #[must_use]
    pub fn string(&self, id: Id, name: &str) -> Option<&str> {
        let (_, value) = self.entry(id, name)?;
        match &self.node(self.target(value)).shape {
            Shape::Scalar(scalar) if scalar.meaning() == Meaning::Text => Some(&scalar.text),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Merged {
    entries: Vec<(Id, Id)>,
    places: HashMap<String, usize>,
}

impl Merged {
    fn set(&mut self, name: String, key: Id, value: Id) {
        let place = *self.places.entry(name).or_insert(self.entries.len());
        match self.entries.get_mut(place) {
            Some(entry) => *entry = (key, value),
            None => self.entries.push((key, value)),
        }
    }
}

/// How much a node stands for once its aliases are followed.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: u64,
    depth: u32,
}

struct Open {
    id: Id,
    anchor: usize,
    inside: Weight,
    children: usize,
    merges: bool,
}

struct Builder<'t> {
    tree: Tree<'t>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Id, Weight)>,
    total: Weight,
}

impl<'t> Builder<'t> {
    fn event(&mut self, event: Event<'t>, span: &Span) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                // The parser writes `~` for a value that is not there.
                let absent = span.start.index() == span.end.index();
                let text = if absent { Cow::Borrowed("") } else { text };
                let scalar = read_scalar(text, style, tag.as_deref(), offset(span))?;
                let (start, end) = self.scalar_extent(&scalar, span);
                let id = self.push(Shape::Scalar(scalar), start, end, span)?;
                self.close(id, anchor, Weight { nodes: 1, depth: 1 })
            }
            Event::Alias(anchor) => {
                let Some((target, weight)) = self.anchors.get(&anchor).copied() else {
                    return Err(Fault::new(offset(span), Problem::AliasToItself));
                };
                let (start, end) = extent(span);
                let id = self.push(Shape::Alias(target), start, end, span)?;
                self.close(id, 0, weight)
            }
            Event::SequenceStart(style, anchor, _) => {
                let flow = style == StructureStyle::Flow;
                self.start(Shape::Sequence { flow }, anchor, span)
            }
            Event::MappingStart(style, anchor, _) => {
                let flow = style == StructureStyle::Flow;
                let merges = false;
                self.start(Shape::Mapping { flow, merges }, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Anchor(_, _) => {
                if let Some(node) = self.tree.nodes.last_mut() {
                    node.properties = node.properties.min(extent(span).0);
                    node.anchored = true;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Where a scalar's own text lies. An empty value takes the place right
    /// after its colon; a block scalar does not own the blank lines after it.
    fn scalar_extent(&self, scalar: &Scalar<'t>, span: &Span) -> (u32, u32) {
        let (start, end) = extent(span);
        let text = self.tree.text;
        if start == end {
            let rest = text.get(start as usize..).unwrap_or_default();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let place = if rest[blank..].starts_with(':') && self.expects_value() {
                start + narrow(blank) + 1
            } else {
                start
            };
            return (place, place);
        }
        if matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded) {
            let own = text.get(start as usize..end as usize).unwrap_or_default();
            return (start, start + narrow(own.trim_end().len()));
        }
        (start, end)
    }

    fn expects_value(&self) -> bool {
        self.open.last().is_some_and(|open| {
            open.children % 2 == 1 && matches!(self.tree.node(open.id).shape, Shape::Mapping { .. })
        })
    }

    fn push(&mut self, shape: Shape<'t>, start: u32, end: u32, span: &Span) -> Result<Id, Fault> {
        let expects_key = self.open.last().is_some_and(|open| {
            open.children % 2 == 0 && matches!(self.tree.node(open.id).shape, Shape::Mapping { .. })
        });
        let id = narrow(self.tree.nodes.len());
        let properties = span
            .tag_start()
            .and_then(|mark| mark.byte_offset())
            .map_or(start, |tag| start.min(narrow(tag)));
        self.tree.nodes.push(Node {
            shape,
            properties,
            start,
            end,
            anchored: false,
            after: id + 1,
        });
        if expects_key {
            if self.tree.is_merge_key(id) {
                if let Some(open) = self.open.last_mut() {
                    open.merges = true;
                }
            } else if self.tree.key_text(id).is_none() {
                return Err(Fault::new(start as usize, Problem::KeyIsNotText));
            }
        }
        Ok(id)
    }

    fn start(&mut self, shape: Shape<'t>, anchor: usize, span: &Span) -> Result<(), Fault> {
        let (start, end) = extent(span);
        let id = self.push(shape, start, end, span)?;
        self.open.push(Open {
            id,
            anchor,
            inside: Weight::default(),
            children: 0,
            merges: false,
        });
        Ok(())
    }

    fn end(&mut self, span: &Span) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let after = narrow(self.tree.nodes.len());
        let last = self
            .tree
            .children(open.id)
            .map(|id| self.tree.node(id).end)
            .max();
        let node = &mut self.tree.nodes[open.id as usize];
        node.after = after;
        let mut mapping = false;
        let flow = match &mut node.shape {
            Shape::Mapping { flow, merges } => {
                mapping = true;
                *merges = open.merges;
                *flow
            }
            Shape::Sequence { flow } => *flow,
            _ => false,
        };
        node.end = if flow {
            extent(span).1
        } else {
            last.unwrap_or(node.start)
        };
        if mapping {
            self.no_duplicates(open.id)?;
            if open.merges {
                self.only_mappings_merge(open.id)?;
            }
        }
        let weight = Weight {
            nodes: open.inside.nodes.saturating_add(1),
            depth: open.inside.depth.saturating_add(1),
        };
        self.close(open.id, open.anchor, weight)
    }

    /// Counts a finished node into its parent.
    fn close(&mut self, id: Id, anchor: usize, weight: Weight) -> Result<(), Fault> {
        if weight.depth > MAX_DEPTH {
            let start = self.tree.node(id).start as usize;
            return Err(Fault::new(start, Problem::TooDeep { levels: MAX_DEPTH }));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (id, weight));
        }
        match self.open.last_mut() {
            Some(open) => {
                open.children += 1;
                open.inside.nodes = open.inside.nodes.saturating_add(weight.nodes);
                open.inside.depth = open.inside.depth.max(weight.depth);
            }
            None => self.total = weight,
        }
        Ok(())
    }

    fn no_duplicates(&self, id: Id) -> Result<(), Fault> {
        let tree = &self.tree;
        let keys: Vec<(Id, Cow<'_, str>)> = tree
            .written_entries(id)
            .filter(|(key, _)| !tree.is_merge_key(*key))
            .filter_map(|(key, _)| Some((key, tree.key_text(key)?)))
            .collect();
        let twice = |first: Id, second: Id, key: &str| {
            let (first_line, _) = line_and_column(tree.text, tree.node(first).start as usize);
            let start = tree.node(second).start as usize;
            let key = key.to_owned();
            Err(Fault::new(start, Problem::DuplicateKey { key, first_line }))
        };
        // Nearly every mapping is small, and comparing beats hashing there.
        if keys.len() <= 16 {
            for (at, (second, key)) in keys.iter().enumerate() {
                if let Some((first, _)) = keys[..at].iter().find(|(_, other)| other == key) {
                    return twice(*first, *second, key);
                }
            }
            return Ok(());
        }
        let mut seen: HashMap<&str, Id> = HashMap::with_capacity(keys.len());
        for (second, key) in &keys {
            if let Some(first) = seen.insert(key, *second) {
                return twice(first, *second, key);
            }
        }
        Ok(())
    }

    fn only_mappings_merge(&self, id: Id) -> Result<(), Fault> {
        let tree = &self.tree;
        let mapping = |id: Id| matches!(tree.node(tree.target(id)).shape, Shape::Mapping { .. });
        for (key, value) in tree.written_entries(id) {
            if !tree.is_merge_key(key) {
                continue;
            }
            let target = tree.target(value);
            let fits = match tree.node(target).shape {
                Shape::Mapping { .. } => true,
                Shape::Sequence { .. } => tree.children(target).all(mapping),
                _ => false,
            };
            if !fits {
                let start = tree.node(value).start as usize;
                return Err(Fault::new(start, Problem::MergeOfNoMapping));
            }
        }
        Ok(())
    }
}

fn read_scalar<'t>(
    text: Cow<'t, str>,
    style: ScalarStyle,
    tag: Option<&granit_parser::Tag>,
    at: usize,
) -> Result<Scalar<'t>, Fault> {
    let Some(tag) = tag else {
        let scalar = Scalar {
            text,
            style,
            tag: Tag::None,
        };
        if style == ScalarStyle::Plain {
            let risky = matches!(scalar.text.bytes().next(), Some(b'.' | b'+' | b'-'));
            if risky && matches!(scalar.meaning(), Meaning::Float(float) if !float.is_finite()) {
                return Err(not_finite(&scalar.text, at));
            }
        }
        return Ok(scalar);
    };
    let suffix = tag.core_suffix().unwrap_or_default();
    if tag.to_string() == "tag:yaml.org,2002:binary" {
        return Err(Fault::new(at, Problem::BinaryTag));
    }
    if tag.to_string() == "tag:yaml.org,2002:merge" {
        let tag = Tag::None;
        return Ok(Scalar { text, style, tag });
    }
    let meaning = scalar::resolve(&text);
    let fits = match suffix {
        "int" => matches!(meaning, Meaning::Signed(_) | Meaning::Unsigned(_)),
        "float" => matches!(meaning, Meaning::Signed(_) | Meaning::Float(_)),
        "bool" => matches!(meaning, Meaning::Bool(_)),
        "null" => matches!(meaning, Meaning::Null),
        _ => {
            let tag = Tag::Text;
            return Ok(Scalar { text, style, tag });
        }
    };
    if !fits {
        let (tag, text) = (suffix.to_owned(), text.into_owned());
        return Err(Fault::new(at, Problem::TagMismatch { tag, text }));
    }
    if matches!(meaning, Meaning::Float(float) if !float.is_finite()) {
        return Err(not_finite(&text, at));
    }
    let tag = if suffix == "float" {
        Tag::Float
    } else {
        Tag::Resolved
    };
    Ok(Scalar { text, style, tag })
}

fn not_finite(text: &str, at: usize) -> Fault {
    let text = text.to_owned();
    Fault::new(at, Problem::NotFinite { text })
}

fn syntax(error: &ScanError) -> Fault {
    let mark = error.marker();
    let at = mark.byte_offset().unwrap_or_else(|| mark.index());
    let expected = error.info();
    Fault::new(at, Problem::Syntax { expected })
}

fn extent(span: &Span) -> (u32, u32) {
    let byte = |mark: &granit_parser::Marker| narrow(mark.byte_offset().unwrap_or(mark.index()));
    (byte(&span.start), byte(&span.end))
}

fn offset(span: &Span) -> usize {
    extent(span).0 as usize
}

/// Documents are capped far below 4 GiB before they are parsed.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
