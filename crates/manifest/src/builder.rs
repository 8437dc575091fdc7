//! Builds a [`Tree`] from the parser's events.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};

use super::error::{Fault, MAX_DEPTH, Problem};
use super::scalar::{self, Meaning};
use super::tree::{Id, Node, Scalar, Shape, Tag, Tree};

/// The most nodes that aliases may add to a document beyond those written in it. The YAML reader of
/// Kubernetes has about the same limit.
const MAX_ALIASED_NODES: usize = 400_000;

/// Like Go's `base64.StdEncoding`, this accepts trailing bits that are not 0.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Parses the one document in `text`; `None` if it has only comments and markers. Fails with
/// [`Problem::Lenient`] at the first place that Kubernetes' reader reads differently from YAML 1.2.
pub(super) fn compose(text: &str) -> Result<Option<Tree<'_>>, Fault> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    options.emit_anchor_events = true;
    let mut builder = Builder {
        tree: Tree { text, nodes: Vec::with_capacity(text.len() / 16), lines: OnceLock::new() },
        open: Vec::new(),
        anchors: HashMap::new(),
        total: Weight::default(),
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| fault(&error, text))?;
        builder.event(event, &span)?;
    }
    let tree = builder.tree;
    if tree.nodes.is_empty() {
        return Ok(None);
    }
    if builder.total.nodes.saturating_sub(tree.nodes.len()) > MAX_ALIASED_NODES {
        return Err(Fault::new(0, Problem::TooManyAliases));
    }
    Ok(Some(tree))
}

/// The size of a node with its aliases followed.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    depth: u32,
}

struct Open {
    id: Id,
    anchor: usize,
    inside: Weight,
    children: usize,
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
                // The parser gives `~` as the text of an absent value.
                let absent = span.start.index() == span.end.index();
                let text = if absent { Cow::Borrowed("") } else { text };
                let scalar = read_scalar(text, style, tag.as_deref(), offset(span))?;
                let (start, end) = self.scalar_extent(&scalar, span);
                let is_in_flow = |open: &Open| self.tree.node(open.id).flow;
                if style == ScalarStyle::Plain && self.open.last().is_some_and(is_in_flow) {
                    self.ends_with_no_colon(end as usize)?;
                }
                let id = self.push(Shape::Scalar(scalar), start, end, span)?;
                self.close(id, anchor, Weight { nodes: 1, depth: 1 })?;
            }
            Event::Alias(anchor) => {
                let Some((target, weight)) = self.anchors.get(&anchor).copied() else {
                    return Err(Fault::new(offset(span), Problem::AliasToItself));
                };
                let (start, end) = extent(span);
                let id = self.push(Shape::Alias(target), start, end, span)?;
                self.close(id, 0, weight)?;
            }
            Event::SequenceStart(style, anchor, _) => {
                self.start(Shape::Sequence, style, anchor, span)?;
            }
            Event::MappingStart(style, anchor, _) => {
                self.start(Shape::Mapping, style, anchor, span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span)?,
            Event::Anchor(_, _) => {
                if let Some(node) = self.tree.nodes.last_mut() {
                    node.properties = node.properties.min(extent(span).0);
                    node.anchored = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The range of a scalar's own text. An empty value is at the offset just after its colon; a
    /// block scalar does not include the blank lines after it.
    fn scalar_extent(&self, scalar: &Scalar<'t>, span: &Span) -> (u32, u32) {
        let (start, end) = extent(span);
        let text = self.tree.text;
        if start == end {
            let rest = text.get(start as usize..).unwrap_or_default();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let place = if rest[blank..].starts_with(':') && self.expects_key() == Some(false) {
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

    fn ends_with_no_colon(&self, end: usize) -> Result<(), Fault> {
        let rest = self.tree.text.get(end..).unwrap_or_default();
        let at = end + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if is_colon_of_a_word(self.tree.text, at) {
            return Err(Fault::new(at, Problem::Lenient));
        }
        Ok(())
    }

    /// Whether the next node is a key rather than a value; `None` outside a mapping.
    fn expects_key(&self) -> Option<bool> {
        let open = self.open.last()?;
        let is_mapping = matches!(self.tree.node(open.id).shape, Shape::Mapping);
        is_mapping.then_some(open.children % 2 == 0)
    }

    fn push(&mut self, shape: Shape<'t>, start: u32, end: u32, span: &Span) -> Result<Id, Fault> {
        let is_key = self.expects_key() == Some(true);
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
            flow: false,
            overlaid: false,
            after: id + 1,
        });
        if is_key && !self.tree.is_merge_key(id) && self.tree.key_text(id).is_none() {
            return Err(Fault::new(start as usize, Problem::KeyIsNotText));
        }
        Ok(id)
    }

    fn start(
        &mut self,
        shape: Shape<'t>,
        style: StructureStyle,
        anchor: usize,
        span: &Span,
    ) -> Result<(), Fault> {
        let (start, end) = extent(span);
        let id = self.push(shape, start, end, span)?;
        self.tree.nodes[id as usize].flow = style == StructureStyle::Flow;
        self.open.push(Open { id, anchor, inside: Weight::default(), children: 0 });
        Ok(())
    }

    fn end(&mut self, span: &Span) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let after = narrow(self.tree.nodes.len());
        self.tree.nodes[open.id as usize].after = after;
        let last = self.tree.children(open.id).map(|id| self.tree.node(id).end).max();
        let overlaid = self.merges(open.id)? || !self.tree.repeated_in(open.id).is_empty();
        let node = &mut self.tree.nodes[open.id as usize];
        node.overlaid = overlaid;
        node.end = if node.flow { extent(span).1 } else { last.unwrap_or(node.start) };
        let weight = Weight {
            nodes: open.inside.nodes.saturating_add(1),
            depth: open.inside.depth.saturating_add(1),
        };
        self.close(open.id, open.anchor, weight)
    }

    /// Adds the size of a finished node to its parent.
    fn close(&mut self, id: Id, anchor: usize, weight: Weight) -> Result<(), Fault> {
        if weight.depth > MAX_DEPTH {
            let start = self.tree.node(id).start as usize;
            return Err(Fault::new(start, Problem::TooDeep));
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

    /// Whether the mapping `id` merges in others.
    fn merges(&self, id: Id) -> Result<bool, Fault> {
        let tree = &self.tree;
        let is_mapping = |node: Id| matches!(tree.node(tree.target(node)).shape, Shape::Mapping);
        let mut merges = false;
        let merged = |(key, _): &(Id, Id)| tree.is_merge_key(*key);
        for (_, value) in tree.written_entries(id).filter(merged) {
            merges = true;
            let target = tree.target(value);
            let fits = match tree.node(target).shape {
                Shape::Sequence => tree.children(target).all(is_mapping),
                _ => is_mapping(target),
            };
            if !fits {
                let start = tree.node(value).start as usize;
                return Err(Fault::new(start, Problem::MergeOfNoMapping));
            }
        }
        Ok(merges)
    }
}

fn read_scalar<'t>(
    text: Cow<'t, str>,
    style: ScalarStyle,
    tag: Option<&granit_parser::Tag>,
    at: usize,
) -> Result<Scalar<'t>, Fault> {
    let mismatch = |suffix: &str, found: &str| {
        Fault::new(at, Problem::TagMismatch { tag: suffix.to_owned(), text: found.to_owned() })
    };
    let (text, tag) = match (tag, tag.map(ToString::to_string).as_deref()) {
        (None, _) | (_, Some("tag:yaml.org,2002:merge")) => (text, Tag::None),
        (_, Some("tag:yaml.org,2002:binary")) => {
            let encoded: String = text.split_ascii_whitespace().collect();
            let bytes = BASE64.decode(encoded).map_err(|_| mismatch("binary", &text))?;
            (Cow::Owned(as_go_writes(&bytes)), Tag::Text)
        }
        (Some(tag), _) => {
            let suffix = tag.core_suffix().unwrap_or_default();
            let resolved = match (suffix, scalar::resolve(&text)) {
                ("int", Meaning::Signed(_) | Meaning::Unsigned(_))
                | ("bool", Meaning::Bool(_))
                | ("null", Meaning::Null) => Tag::Resolved,
                ("float", Meaning::Signed(_) | Meaning::Float(_)) => Tag::Float,
                ("int" | "bool" | "null" | "float", _) => return Err(mismatch(suffix, &text)),
                _ => Tag::Text,
            };
            (text, resolved)
        }
    };
    let scalar = Scalar { text, style, tag };
    // The first letter shows that most scalars are not such numbers.
    let may_be_endless = matches!(scalar.text.bytes().next(), Some(b'.' | b'+' | b'-'));
    if may_be_endless && matches!(scalar.meaning(), Meaning::Float(float) if !float.is_finite()) {
        return Err(Fault::new(at, Problem::NotFinite { text: scalar.text.into_owned() }));
    }
    Ok(scalar)
}

/// Interprets an error of the parser.
fn fault(error: &ScanError, text: &str) -> Fault {
    let mark = error.marker();
    let at = mark.byte_offset().unwrap_or_else(|| mark.index());
    if is_colon_of_a_word(text, at) || is_hyphen(text, at) {
        return Fault::new(at, Problem::Lenient);
    }
    Fault::syntax(at, &error.info())
}

/// The text that the bytes become in the intermediate JSON in Kubernetes: each byte that is not
/// UTF-8 becomes its own replacement character.
fn as_go_writes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Whether Kubernetes' reader, which follows YAML 1.1 in this, would read the colon at `at` as part
/// of the plain scalar before it.
fn is_colon_of_a_word(text: &str, at: usize) -> bool {
    if !ends_an_item(text, at, b':') {
        return false;
    }
    // Several colons belong to the word too, but colons alone are not a word.
    let word = match text[..at].strip_suffix(':') {
        Some(word) => word.trim_end_matches(':'),
        None => text[..at].trim_end_matches([' ', '\t']),
    };
    word.ends_with(|last: char| !"\"',[]{}: \t\n".contains(last))
}

/// Whether a hyphen at `at` is a whole plain scalar.
fn is_hyphen(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end();
    ends_an_item(text, at, b'-') && before.ends_with(['[', '{', ',', ':'])
}

/// Whether `letter` is at `at` and the end of an item between brackets or braces follows.
fn ends_an_item(text: &str, at: usize, letter: u8) -> bool {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    matches!(rest, [first, b',' | b']' | b'}', ..] if *first == letter)
}

fn extent(span: &Span) -> (u32, u32) {
    let byte = |mark: &granit_parser::Marker| narrow(mark.byte_offset().unwrap_or(mark.index()));
    (byte(&span.start), byte(&span.end))
}

fn offset(span: &Span) -> usize {
    extent(span).0 as usize
}

/// Documents are limited to far less than 4 GiB before they are parsed.
pub(super) fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
