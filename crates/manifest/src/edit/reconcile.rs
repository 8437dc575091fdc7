//! Finds the fewest edits of a text that give its tree the wanted value.

use std::collections::HashSet;

use granit_parser::ScalarStyle;
use serde_json::{Map, Value};

use super::super::field_index::size;
use super::super::tree::{Id, Node, Shape, Tree};
use super::render::{self, Flow, Style};
use super::{Edit, EditError};

/// The most values that replace an alias; a larger value is clearer as an anchor.
const MAX_UNFOLDED: usize = 12;

/// The edits that change the object `id` from the value `old` to `new`, in the style of its
/// document.
pub(super) fn edits(
    tree: &Tree<'_>,
    style: Style,
    id: Id,
    old: &Value,
    new: &Value,
) -> Result<Vec<Edit>, EditError> {
    let mut reconciler = Reconciler { tree, style, edits: Vec::new(), field: String::new() };
    let id = tree.target(id);
    reconciler.node(&Slot::Inside, id, old, new)?;
    Ok(reconciler.edits)
}

/// The text before a value.
enum Slot {
    /// A key of a block mapping: its column and the offset after its colon.
    Key { column: usize, colon: usize },
    /// The dash of an item in a block list.
    Dash { column: usize },
    /// Brackets or braces, or nothing if the value is the root of a document.
    Inside,
}

struct Reconciler<'a, 't> {
    tree: &'a Tree<'t>,
    style: Style,
    edits: Vec<Edit>,
    /// The key that was last descended into, for refusals.
    field: String,
}

impl Reconciler<'_, '_> {
    fn node(&mut self, slot: &Slot, id: Id, old: &Value, new: &Value) -> Result<(), EditError> {
        if old == new {
            return Ok(());
        }
        let has_children = self.tree.children(id).next().is_some();
        match (&self.tree.node(id).shape, old, new) {
            (Shape::Mapping, Value::Object(old), Value::Object(new))
                if has_children && !new.is_empty() =>
            {
                self.mapping(slot, id, old, new)
            }
            (Shape::Sequence, Value::Array(old), Value::Array(new))
                if has_children && !new.is_empty() =>
            {
                self.sequence(id, old, new)
            }
            _ => self.replace(slot, id, new),
        }
    }

    fn mapping(
        &mut self,
        slot: &Slot,
        id: Id,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<(), EditError> {
        let tree = self.tree;
        let entries: Vec<(Id, Id)> = tree.written_entries(id).collect();
        let written = self.values(id, &entries, old, new)?;
        let names: HashSet<&str> = written.iter().flatten().map(String::as_str).collect();
        for name in old.keys() {
            if !new.contains_key(name) && !names.contains(name.as_str()) {
                return Err(EditError::Shared(name.clone()));
            }
        }
        let is_gone =
            |name: &Option<String>| name.as_ref().is_some_and(|name| !new.contains_key(name));
        if written.iter().all(is_gone) {
            return self.replace(slot, id, &Value::Object(new.clone()));
        }
        for (at, name) in written.iter().enumerate() {
            if let Some(name) = name
                && !new.contains_key(name)
            {
                self.field.clone_from(name);
                self.remove(id, &entries, at)?;
            }
        }
        for (name, value) in new {
            if names.contains(name.as_str()) || old.get(name) == Some(value) {
                continue;
            }
            self.field.clone_from(name);
            let before =
                if tree.node(id).overlaid { entries.len() } else { place_for(name, &written) };
            self.add(id, &entries, before, Some(name), value)?;
        }
        Ok(())
    }

    /// Changes the values of the keys that stay. Returns the name of each entry, or `None` for one
    /// that has no effect.
    fn values(
        &mut self,
        id: Id,
        entries: &[(Id, Id)],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<Vec<Option<String>>, EditError> {
        let tree = self.tree;
        // A mapping may have as many keys as a file has lines.
        let effective: HashSet<(Id, Id)> = tree.entries(id).into_iter().collect();
        let mut written = Vec::with_capacity(entries.len());
        for (key, value) in entries.iter().copied() {
            // A key that a later key or merge overrides has no effect.
            if tree.is_merge_key(key) || !effective.contains(&(key, value)) {
                written.push(None);
                continue;
            }
            let name = tree.key_text(key).unwrap_or_default().into_owned();
            let before = old.get(&name).ok_or(EditError::Changed)?;
            if let Some(after) = new.get(&name)
                && after != before
            {
                self.field.clone_from(&name);
                let slot = self.slot(id, (key, value))?;
                self.node(&slot, value, before, after)?;
            }
            written.push(Some(name));
        }
        Ok(written)
    }

    /// Adds `value` to the collection `id`, before the entry or item with the index `before`. An
    /// entry has a `name`, an item has none.
    fn add(
        &mut self,
        id: Id,
        entries: &[(Id, Id)],
        before: usize,
        name: Option<&str>,
        value: &Value,
    ) -> Result<(), EditError> {
        let tree = self.tree;
        if tree.node(id).flow {
            let flow = tree.flow_of(id);
            let text = match name {
                Some(name) => self.style.flow_entry(name, value, flow),
                None => self.style.flow(value, flow),
            };
            self.add_between(flow, entries, before, &text);
            return Ok(());
        }
        let first = self.start_of(entries[0])?;
        let column = tree.column(first);
        let lines = match name {
            Some(name) => self.style.entry(name, value, column),
            None => self.style.item(value, column),
        };
        match before.checked_sub(1) {
            // Comments above the first key stay above it only if the key starts its line.
            None if tree.starts_line(first) => {
                self.edits.push(Edit::insert(tree.line_start(first), lines));
            }
            // The order matters for items, but not for entries.
            None if name.is_none() => return Err(self.unusual()),
            previous => {
                let (_, previous) = entries[previous.unwrap_or(0)];
                let end = tree.node(previous).end as usize;
                self.insert_lines(tree.line_end(end), lines);
            }
        }
        Ok(())
    }

    /// Adds `text` between brackets or braces, before the entry or item with the index `before`.
    fn add_between(&mut self, flow: Flow, entries: &[(Id, Id)], before: usize, text: &str) {
        let gap = match flow.lines {
            Some(column) => format!("{}{:column$}", self.style.newline, ""),
            None if flow.tight => String::new(),
            None => " ".to_owned(),
        };
        self.edits.push(match before.checked_sub(1) {
            Some(previous) => {
                let end = self.tree.node(entries[previous].1).end as usize;
                Edit::insert(end, format!(",{gap}{text}"))
            }
            None => Edit::insert(self.tree.begin(entries[0].0), format!("{text},{gap}")),
        });
    }

    fn sequence(&mut self, id: Id, old: &[Value], new: &[Value]) -> Result<(), EditError> {
        // An item is like an entry whose key and value are the same node.
        let items: Vec<(Id, Id)> = self.tree.children(id).map(|item| (item, item)).collect();
        if items.len() != old.len() {
            return Err(EditError::Changed);
        }
        let (mut at, mut wanted) = (0, 0);
        while at < old.len() || wanted < new.len() {
            match (old.get(at), new.get(wanted)) {
                (Some(before), Some(after)) if before == after => {
                    at += 1;
                    wanted += 1;
                }
                (Some(_), Some(after)) if old[at..].contains(after) => {
                    self.remove(id, &items, at)?;
                    at += 1;
                }
                (Some(before), Some(after)) if !new[wanted..].contains(before) => {
                    let slot = self.slot(id, items[at])?;
                    let (_, item) = items[at];
                    self.node(&slot, item, before, after)?;
                    at += 1;
                    wanted += 1;
                }
                (_, Some(after)) => {
                    self.add(id, &items, at, None, after)?;
                    wanted += 1;
                }
                (_, None) => {
                    self.remove(id, &items, at)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// Removes the entry or item with the index `at` from the collection `id`.
    fn remove(&mut self, id: Id, entries: &[(Id, Id)], at: usize) -> Result<(), EditError> {
        let (key, value) = entries[at];
        let end = self.tree.node(value).end as usize;
        let next = entries.get(at + 1).map(|(following, _)| self.tree.begin(*following));
        let edit = if self.tree.node(id).flow {
            match (next, at.checked_sub(1).map(|at| entries[at].1)) {
                (Some(next), _) => Edit::delete(self.tree.begin(key), next),
                (None, Some(previous)) => Edit::delete(self.tree.node(previous).end as usize, end),
                (None, None) => Edit::delete(self.tree.begin(key), end),
            }
        } else {
            let start = self.start_of((key, value))?;
            match next {
                _ if self.tree.starts_line(start) => {
                    Edit::delete(self.tree.line_start(start), self.tree.line_end(end))
                }
                // The entry is the first one after a dash: the next one moves up to the dash.
                Some(next) if key != value => Edit::delete(start, next),
                _ => return Err(self.unusual()),
            }
        };
        self.edits.push(edit);
        Ok(())
    }

    /// Replaces the whole node with `new`.
    fn replace(&mut self, slot: &Slot, id: Id, new: &Value) -> Result<(), EditError> {
        let node = self.tree.node(id);
        let end = node.end as usize;
        if matches!(node.shape, Shape::Alias(_)) && size(new) > MAX_UNFOLDED {
            return Err(EditError::Shared(self.field.clone()));
        }
        // An anchor stays before the new value; the check after the edit detects whether an alias
        // depends on it.
        let start = if node.anchored { node.start as usize } else { node.properties as usize };
        let absent = node.start == node.end;
        let block = is_block(node);
        let scalar = node.shape.scalar().filter(|_| !block);
        // The style of an absent value is plain, too.
        let inline = render::inline(new, scalar.map_or(ScalarStyle::Plain, |scalar| scalar.style));
        match (slot, inline) {
            (Slot::Inside, _) if absent || block => return Err(self.unusual()),
            (Slot::Inside, Some(text)) if scalar.is_some() => {
                self.edits.push(Edit::replace(start, end, text));
            }
            (Slot::Inside, _) => {
                let flow = self.tree.flow_around(id);
                let text = self.style.flow(new, flow);
                self.edits.push(Edit::replace(start, end, text));
            }
            (Slot::Key { colon, .. }, Some(text)) if absent || block => {
                if !absent {
                    self.drop_below(id, *colon)?;
                }
                self.edits.push(Edit::insert(*colon, format!(" {text}")));
            }
            (Slot::Key { .. } | Slot::Dash { .. }, Some(text)) if !absent => {
                self.edits.push(Edit::replace(start, end, text));
            }
            (Slot::Key { column, colon }, None) => {
                let below = if block {
                    self.drop_below(id, *colon)?
                } else {
                    if !absent {
                        self.edits.push(Edit::delete(*colon, end));
                    }
                    self.tree.line_end(end.max(*colon))
                };
                self.insert_lines(below, self.style.below_key(new, *column));
            }
            (Slot::Dash { column }, None) if !absent => {
                let lines = self.style.block(new, column + 2);
                self.edits.push(Edit::replace(start, end, lines.trim_matches([' ', '\r', '\n'])));
            }
            _ => return Err(self.unusual()),
        }
        Ok(())
    }

    /// Deletes the lines below a key if its value starts there; returns the offset of their start.
    fn drop_below(&mut self, id: Id, colon: usize) -> Result<usize, EditError> {
        let node = self.tree.node(id);
        let below = self.tree.line_end(colon);
        let behind = self.tree.text[colon..below].trim();
        // A comment after the colon may stay; the `|` of a block scalar or an anchor may not.
        if (node.start as usize) < below || !(behind.is_empty() || behind.starts_with('#')) {
            return Err(self.unusual());
        }
        let end = self.tree.line_end(node.end as usize);
        self.edits.push(Edit::delete(below, end));
        Ok(below)
    }

    fn insert_lines(&mut self, at: usize, mut lines: String) {
        if !self.tree.text[..at].ends_with('\n') {
            lines.truncate(lines.len() - self.style.newline.len());
            lines.insert_str(0, self.style.newline);
        }
        self.edits.push(Edit::insert(at, lines));
    }

    /// The text before the value of an entry or item of the collection `id`.
    fn slot(&self, id: Id, (key, value): (Id, Id)) -> Result<Slot, EditError> {
        if self.tree.node(id).flow {
            return Ok(Slot::Inside);
        }
        let column = self.tree.column(self.start_of((key, value))?);
        if key == value {
            return Ok(Slot::Dash { column });
        }
        let end = self.tree.node(key).end as usize;
        let rest = self.tree.text[end..].trim_start_matches([' ', '\t']);
        let behind = rest.strip_prefix(':').ok_or_else(|| self.unusual())?;
        let colon = self.tree.text.len() - behind.len();
        Ok(Slot::Key { column, colon })
    }

    /// The offset of an entry's key, or of the dash before an item of a block list.
    fn start_of(&self, (key, value): (Id, Id)) -> Result<usize, EditError> {
        let begin = self.tree.begin(key);
        if key != value {
            return Ok(begin);
        }
        let before = self.tree.text[..begin].trim_end();
        before.strip_suffix('-').map(str::len).ok_or_else(|| self.unusual())
    }

    fn unusual(&self) -> EditError {
        EditError::Unusual(self.field.clone())
    }
}

/// Whether the node is written in block style, over several lines.
const fn is_block(node: &Node<'_>) -> bool {
    match &node.shape {
        Shape::Scalar(scalar) => {
            matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded)
        }
        Shape::Sequence | Shape::Mapping => !node.flow,
        Shape::Alias(_) => false,
    }
}

/// The index of the entry before which `name` is added. Sorted mappings stay sorted, two keys have
/// a customary place, and other keys go last.
fn place_for(name: &str, written: &[Option<String>]) -> usize {
    if written.len() > 2 && written.is_sorted() {
        return written.partition_point(|other| other.as_deref() < Some(name));
    }
    let behind: &[&str] = match name {
        "strategy" => &["template"],
        "affinity" => &["containers", "initContainers"],
        _ => &[],
    };
    written
        .iter()
        .position(|other| other.as_deref().is_some_and(|key| behind.contains(&key)))
        .unwrap_or(written.len())
}
