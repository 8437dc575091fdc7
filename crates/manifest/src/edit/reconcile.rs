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
    let mut reconciler = Reconciler {
        tree,
        style,
        edits: Vec::new(),
        field: String::new(),
    };
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
        match (&self.tree.node(id).shape, old, new) {
            (Shape::Mapping, Value::Object(old), Value::Object(new))
                if !new.is_empty() && self.tree.children(id).next().is_some() =>
            {
                self.mapping(slot, id, self.tree.node(id).flow, old, new)
            }
            (Shape::Sequence, Value::Array(old), Value::Array(new))
                if !new.is_empty() && self.tree.children(id).next().is_some() =>
            {
                self.sequence(id, self.tree.node(id).flow, old, new)
            }
            _ => self.replace(slot, id, new),
        }
    }

    fn mapping(
        &mut self,
        slot: &Slot,
        id: Id,
        flow: bool,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<(), EditError> {
        let tree = self.tree;
        let entries: Vec<(Id, Id)> = tree.written_entries(id).collect();
        let overlaid = tree.node(id).overlaid;
        let (written, gone) = self.values(id, flow, &entries, old, new)?;
        let names: HashSet<&str> = written.iter().map(String::as_str).collect();
        for name in old.keys() {
            if !new.contains_key(name) && !names.contains(name.as_str()) {
                return Err(EditError::Shared(name.clone()));
            }
        }
        if gone.len() == entries.len() {
            return self.replace(slot, id, &Value::Object(new.clone()));
        }
        for at in gone {
            let (key, value) = entries[at];
            self.field.clone_from(&written[at]);
            let next = entries.get(at + 1).map(|(key, _)| *key);
            let previous = at.checked_sub(1).map(|at| entries[at].1);
            self.remove(flow, key, value, previous, next)?;
        }
        for (name, value) in new {
            if names.contains(name.as_str()) || old.get(name) == Some(value) {
                continue;
            }
            self.field.clone_from(name);
            let before = if overlaid {
                entries.len()
            } else {
                place_for(name, &written)
            };
            if flow {
                self.add_in_flow(id, &entries, before, name, value);
            } else {
                self.add_line(&entries, before, name, value);
            }
        }
        Ok(())
    }

    /// Changes the values of the keys that stay. Returns the names of the `entries`, and the indices
    /// of those that must be removed.
    fn values(
        &mut self,
        id: Id,
        flow: bool,
        entries: &[(Id, Id)],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<(Vec<String>, Vec<usize>), EditError> {
        let tree = self.tree;
        // A mapping may have as many keys as a file has lines.
        let effective: HashSet<(Id, Id)> = tree.entries(id).into_iter().collect();
        let mut gone = Vec::new();
        let mut written = Vec::with_capacity(entries.len());
        for (at, (key, value)) in entries.iter().copied().enumerate() {
            // A key that a later key or merge overrides has no effect.
            if tree.is_merge_key(key) || !effective.contains(&(key, value)) {
                written.push(String::new());
                continue;
            }
            let name = tree.key_text(key).unwrap_or_default().into_owned();
            let before = old.get(&name).ok_or(EditError::Changed)?;
            match new.get(&name) {
                None => gone.push(at),
                Some(after) if after != before => {
                    self.field.clone_from(&name);
                    let slot = if flow {
                        Slot::Inside
                    } else {
                        self.behind_key(key)?
                    };
                    self.node(&slot, value, before, after)?;
                }
                Some(_) => {}
            }
            written.push(name);
        }
        Ok((written, gone))
    }

    /// Adds `name: value` to a block mapping, before the entry with the index `before`.
    fn add_line(&mut self, entries: &[(Id, Id)], before: usize, name: &str, value: &Value) {
        let Some((first, _)) = entries.first().copied() else {
            return;
        };
        let indent = self.tree.column(self.tree.begin(first));
        let lines = self.style.entry(name, value, indent);
        match before.checked_sub(1) {
            // Comments above the first key stay above it only if the key starts its line.
            None if self.tree.starts_line(self.tree.begin(first)) => {
                let start = self.tree.line_start(self.tree.begin(first));
                self.edits.push(Edit::insert(start, lines));
            }
            previous => self.insert_after(entries[previous.unwrap_or(0)].1, lines),
        }
    }

    /// Adds `lines` after the line on which the node `id` ends.
    fn insert_after(&mut self, id: Id, lines: String) {
        let end = self.tree.line_end(self.tree.node(id).end as usize);
        self.insert_lines(end, lines);
    }

    /// Adds `name: value` between braces, before the entry with the index `before`.
    fn add_in_flow(
        &mut self,
        id: Id,
        entries: &[(Id, Id)],
        before: usize,
        name: &str,
        value: &Value,
    ) {
        let flow = self.tree.flow_of(id);
        let entry = self.style.flow_entry(name, value, flow);
        let previous = before.checked_sub(1).and_then(|at| entries.get(at));
        let next = entries.first().map(|(key, _)| *key);
        self.add_between(flow, previous.map(|(_, value)| *value), next, &entry);
    }

    /// Adds `text` after `previous` or, if there is none, before `next`.
    fn add_between(&mut self, flow: Flow, previous: Option<Id>, next: Option<Id>, text: &str) {
        let gap = match flow.lines {
            Some(column) => format!("{}{:column$}", self.style.newline, ""),
            None if flow.tight => String::new(),
            None => " ".to_owned(),
        };
        self.edits.extend(match (previous, next) {
            (Some(previous), _) => {
                let end = self.tree.node(previous).end as usize;
                Some(Edit::insert(end, format!(",{gap}{text}")))
            }
            (None, Some(next)) => {
                Some(Edit::insert(self.tree.begin(next), format!("{text},{gap}")))
            }
            // Empty brackets are replaced as a whole.
            (None, None) => None,
        });
    }

    fn sequence(
        &mut self,
        id: Id,
        flow: bool,
        old: &[Value],
        new: &[Value],
    ) -> Result<(), EditError> {
        let items: Vec<Id> = self.tree.children(id).collect();
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
                    self.remove_item(flow, &items, at)?;
                    at += 1;
                }
                (Some(before), Some(after)) if !new[wanted..].contains(before) => {
                    let slot = if flow {
                        Slot::Inside
                    } else {
                        let column = self.tree.column(self.dash(items[at])?);
                        Slot::Dash { column }
                    };
                    self.node(&slot, items[at], before, after)?;
                    at += 1;
                    wanted += 1;
                }
                (_, Some(after)) => {
                    self.add_item(id, flow, &items, at, after)?;
                    wanted += 1;
                }
                (_, None) => {
                    self.remove_item(flow, &items, at)?;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    fn remove_item(&mut self, flow: bool, items: &[Id], at: usize) -> Result<(), EditError> {
        let next = items.get(at + 1).copied();
        let previous = at.checked_sub(1).map(|at| items[at]);
        self.remove(flow, items[at], items[at], previous, next)
    }

    /// Adds `value` to a list, before the item with the index `before`.
    fn add_item(
        &mut self,
        id: Id,
        flow: bool,
        items: &[Id],
        before: usize,
        value: &Value,
    ) -> Result<(), EditError> {
        if flow {
            let flow = self.tree.flow_of(id);
            let item = self.style.flow(value, flow);
            let previous = before.checked_sub(1).map(|at| items[at]);
            self.add_between(flow, previous, items.first().copied(), &item);
            return Ok(());
        }
        let Some(first) = items.first() else {
            return Err(self.unusual());
        };
        let dash = self.dash(*first)?;
        let lines = self.style.item(value, self.tree.column(dash));
        match before.checked_sub(1) {
            None if self.tree.starts_line(dash) => {
                let start = self.tree.line_start(dash);
                self.edits.push(Edit::insert(start, lines));
            }
            None => return Err(self.unusual()),
            Some(previous) => self.insert_after(items[previous], lines),
        }
        Ok(())
    }

    /// Removes an entry or, if `key` equals `value`, an item.
    fn remove(
        &mut self,
        flow: bool,
        key: Id,
        value: Id,
        previous: Option<Id>,
        next: Option<Id>,
    ) -> Result<(), EditError> {
        let end = self.tree.node(value).end as usize;
        let edit = if flow {
            match (next, previous) {
                (Some(next), _) => Edit::delete(self.tree.begin(key), self.tree.begin(next)),
                (None, Some(previous)) => Edit::delete(self.tree.node(previous).end as usize, end),
                (None, None) => Edit::delete(self.tree.begin(key), end),
            }
        } else {
            let start = if key == value {
                self.dash(key)?
            } else {
                self.tree.begin(key)
            };
            match next {
                _ if self.tree.starts_line(start) => {
                    Edit::delete(self.tree.line_start(start), self.tree.line_end(end))
                }
                // The entry is the first one after a dash: the next one moves up to the dash.
                Some(next) if key != value => Edit::delete(start, self.tree.begin(next)),
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
        let start = if node.anchored {
            node.start as usize
        } else {
            node.properties as usize
        };
        let absent = node.start == node.end;
        let block = is_block(node);
        let scalar = matches!(node.shape, Shape::Scalar(_)) && !block;
        let inline = match (new, &node.shape) {
            (Value::Object(_) | Value::Array(_), _) => render::inline(new),
            (new, Shape::Scalar(old)) if scalar && !absent => Some(render::scalar(new, old.style)),
            (new, _) => Some(render::scalar(new, ScalarStyle::Plain)),
        };
        match (slot, inline) {
            (Slot::Inside, _) if absent || block => return Err(self.unusual()),
            (Slot::Inside, Some(text)) if scalar => {
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
                let lines = lines.trim_matches([' ', '\r', '\n']);
                self.edits.push(Edit::replace(start, end, lines));
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

    fn behind_key(&self, key: Id) -> Result<Slot, EditError> {
        let node = self.tree.node(key);
        let rest = self.tree.text[node.end as usize..].trim_start_matches([' ', '\t']);
        let behind = rest.strip_prefix(':').ok_or_else(|| self.unusual())?;
        Ok(Slot::Key {
            column: self.tree.column(self.tree.begin(key)),
            colon: self.tree.text.len() - behind.len(),
        })
    }

    /// The offset of the dash before an item of a block list.
    fn dash(&self, item: Id) -> Result<usize, EditError> {
        let before = self.tree.text[..self.tree.begin(item)].trim_end();
        let before = before.strip_suffix('-').map(str::len);
        before.ok_or_else(|| self.unusual())
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
fn place_for(name: &str, written: &[String]) -> usize {
    if written.len() > 2 && written.is_sorted() {
        return written.partition_point(|other| other.as_str() < name);
    }
    let behind: &[&str] = match name {
        "strategy" => &["template"],
        "affinity" => &["containers", "initContainers"],
        _ => &[],
    };
    written
        .iter()
        .position(|other| behind.contains(&other.as_str()))
        .unwrap_or(written.len())
}
