//! Mutations that keep a text's syntax, so that inputs get past the parser. Some of the inputs get
//! the fuzzer's own mutations instead, which know no syntax.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// Names of fields that the program reads, one per line.
const FIELDS: &str = include_str!("fields.txt");
/// Values that affect decisions, one JSON value per line.
const VALUES: &str = include_str!("values.txt");
/// Lines of manifests and policies.
const LINES: &str = include_str!("lines.txt");

/// A generator of pseudorandom choices from a seed (splitmix64).
struct Lot(u64);

impl Lot {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((drawn ^ (drawn >> 31)) % below.max(1) as u64) as usize
    }

    fn one_of<'t>(&mut self, lines: &'t str) -> &'t str {
        let count = lines.lines().count();
        lines.lines().nth(self.draw(count)).unwrap_or_default()
    }
}

/// Changes a few values of a JSON document.
pub fn json(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut lot = Lot(u64::from(seed));
    let parsed = serde_json::from_slice(&data[..size]);
    let (Ok(mut value), 1..) = (parsed, lot.draw(4)) else {
        return fuzzer_mutate(data, size, max_size);
    };
    for _ in 0..=lot.draw(4) {
        let mut paths = Vec::new();
        paths_of(&value, &mut String::new(), &mut paths);
        let path = &paths[lot.draw(paths.len())];
        let other = value.pointer(&paths[lot.draw(paths.len())]).cloned();
        if let Some(node) = value.pointer_mut(path) {
            change(node, other.unwrap_or_default(), &mut lot);
        }
    }
    stored(data, size, max_size, &value.to_string())
}

fn paths_of(value: &Value, here: &mut String, paths: &mut Vec<String>) {
    paths.push(here.clone());
    let length = here.len();
    let mut inside = |name: &str, value: &Value| {
        here.push('/');
        here.push_str(&name.replace('~', "~0").replace('/', "~1"));
        paths_of(value, here, paths);
        here.truncate(length);
    };
    match value {
        Value::Object(entries) => entries.iter().for_each(|(name, value)| inside(name, value)),
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                inside(&number.to_string(), value);
            }
        }
        _ => {}
    }
}

fn any_value(lot: &mut Lot) -> Value {
    serde_json::from_str(lot.one_of(VALUES)).expect("each line of values.txt is JSON")
}

fn change(node: &mut Value, other: Value, lot: &mut Lot) {
    match (lot.draw(8), node) {
        (0, node) => *node = other,
        (1, node) => *node = any_value(lot),
        (2, node) => *node = json!([node.take()]),
        (3, Value::Object(entries)) if !entries.is_empty() => {
            let name = entries.keys().nth(lot.draw(entries.len())).cloned();
            entries.shift_remove(&name.unwrap_or_default());
        }
        (4, Value::Object(entries)) => {
            entries.insert(lot.one_of(FIELDS).to_owned(), other);
        }
        (_, Value::Object(entries)) => {
            entries.insert(lot.one_of(FIELDS).to_owned(), any_value(lot));
        }
        (3, Value::Array(items)) if !items.is_empty() => {
            items.remove(lot.draw(items.len()));
        }
        (4, Value::Array(items)) if !items.is_empty() => {
            let twin = items[lot.draw(items.len())].clone();
            items.push(twin);
        }
        (5, Value::Array(items)) => items.push(other),
        (_, Value::Array(items)) => items.push(any_value(lot)),
        (3, node) => {
            *node = Value::Object(Map::from_iter([(lot.one_of(FIELDS).to_owned(), node.take())]))
        }
        (_, Value::Number(number)) => {
            let nearby = number.as_i64().unwrap_or_default();
            *number = match lot.draw(4) {
                0 => nearby.wrapping_add(1).into(),
                1 => nearby.wrapping_sub(1).into(),
                2 => nearby.wrapping_neg().into(),
                _ => nearby.wrapping_mul(256).into(),
            };
        }
        (_, Value::Bool(value)) => *value = !*value,
        (_, node) => *node = any_value(lot),
    }
}

/// Changes a few lines of a text: adds or removes lines, changes their indentation, or the value
/// after the colon.
pub fn lines(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut lot = Lot(u64::from(seed));
    let (Ok(text), 1..) = (str::from_utf8(&data[..size]), lot.draw(3)) else {
        return fuzzer_mutate(data, size, max_size);
    };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if lines.is_empty() {
        lines.push("\n".to_owned());
    }
    for _ in 0..=lot.draw(3) {
        line(&mut lines, &mut lot);
        if lines.is_empty() {
            lines.push("\n".to_owned());
        }
    }
    stored(data, size, max_size, &lines.concat())
}

fn line(lines: &mut Vec<String>, lot: &mut Lot) {
    let at = lot.draw(lines.len());
    let indent = lines[at].len() - lines[at].trim_start_matches(' ').len();
    match lot.draw(16) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let other = lot.draw(lines.len());
            lines.swap(at, other);
        }
        3 => lines[at].insert_str(0, &"  "[..1 + lot.draw(2)]),
        4 if indent > 0 => drop(lines[at].remove(0)),
        // Copies a block of lines to another place.
        5 => {
            let end = (at + 1 + lot.draw(8)).min(lines.len());
            let block: Vec<String> = lines[at..end].to_vec();
            let to = lot.draw(lines.len());
            lines.splice(to..to, block);
        }
        6 => {
            let end = (at + 1 + lot.draw(8)).min(lines.len());
            lines.drain(at..end);
        }
        7 => {
            let newline = lines[at].trim_end_matches(['\r', '\n']).len();
            lines[at].insert_str(newline, [" # c", "\r", " ", "\t", " |", " >-"][lot.draw(6)]);
        }
        8..=11 => {
            let new = format!("{:indent$}{}\n", "", lot.one_of(LINES).replace("\\n", "\n"));
            lines.insert(at, new);
        }
        // Replaces the value.
        12 | 13 => {
            if let Some(colon) = lines[at].find(": ") {
                let value = lot.one_of(VALUES);
                lines[at].replace_range(colon + 2.., &format!("{value}\n"));
            }
        }
        14 => {
            if let Some(colon) = lines[at].find(':') {
                let sign = [" &a", " *a", " !!str", " !!int", " !x", " '", " \"", " [", " {"];
                lines[at].insert_str(colon + 1, sign[lot.draw(sign.len())]);
            }
        }
        _ => {
            let new = format!("{:indent$}{}: {}\n", "", lot.one_of(FIELDS), lot.one_of(VALUES));
            lines.insert(at, new);
        }
    }
}

/// Writes the text into the fuzzer's buffer if it fits.
fn stored(data: &mut [u8], size: usize, max_size: usize, text: &str) -> usize {
    if text.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}
