//! New values as YAML or JSON text.

use serde_json::Value;

use super::super::scalar::{Meaning, resolve};
use granit_parser::ScalarStyle;

/// The style of the document around the new text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// The number of spaces by which a nested mapping is indented.
    pub step: usize,
    /// Whether the dashes of a list are in the same column as its key.
    pub compact: bool,
    /// `\n` or `\r\n`.
    pub newline: &'static str,
}

/// The style of a flow collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Whether every string is in double quotes, as JSON requires.
    pub quoted: bool,
    /// Whether there is no space after colons and commas.
    pub tight: bool,
    /// The column of the collection's entries if each has its own line.
    pub lines: Option<usize>,
}

/// A value that fits on the line of its key; `None` for a collection with entries. A scalar gets the
/// quotes of `like` if they fit.
pub(super) fn inline(value: &Value, like: ScalarStyle) -> Option<String> {
    match value {
        Value::Object(map) if map.is_empty() => Some("{}".to_owned()),
        Value::Array(items) if items.is_empty() => Some("[]".to_owned()),
        Value::Object(_) | Value::Array(_) => None,
        scalar => Some(self::scalar(scalar, like)),
    }
}

/// A scalar, with the quotes of `like` if they fit.
fn scalar(value: &Value, like: ScalarStyle) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let printable = !text.chars().any(char::is_control);
    match like {
        ScalarStyle::SingleQuoted if printable => format!("'{}'", text.replace('\'', "''")),
        ScalarStyle::Plain if is_plain(text) => text.clone(),
        // JSON's escapes are also valid in YAML.
        _ => value.to_string(),
    }
}

/// Whether a string keeps its meaning without quotes.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./-".contains(byte);
    let date = bytes.len() > 4 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-';
    bytes.first().is_some_and(|first| first.is_ascii_alphanumeric() || *first == b'/')
        && bytes.iter().all(safe)
        && resolve(text) == Meaning::Text
        && !date
}

impl Style {
    /// Lines for a mapping's entry `name: value`, indented by `indent` spaces
    /// and ended with a newline.
    pub(super) fn entry(self, name: &str, value: &Value, indent: usize) -> String {
        let key = scalar(&name.into(), ScalarStyle::Plain);
        let start = format!("{:indent$}{key}:", "");
        match inline(value, ScalarStyle::Plain) {
            Some(text) => format!("{start} {text}{}", self.newline),
            None => format!("{start}{}{}", self.newline, self.below_key(value, indent)),
        }
    }

    /// The lines below a key at the column `indent`.
    pub(super) fn below_key(self, value: &Value, indent: usize) -> String {
        let nested = match value {
            Value::Array(_) if self.compact => indent,
            _ => indent + self.step,
        };
        self.block(value, nested)
    }

    /// A list's item: `- value`, ended with a newline.
    pub(super) fn item(self, value: &Value, indent: usize) -> String {
        match inline(value, ScalarStyle::Plain) {
            Some(text) => format!("{:indent$}- {text}{}", "", self.newline),
            None => {
                let block = self.block(value, indent + 2);
                format!("{:indent$}- {}", "", block.trim_start_matches(' '))
            }
        }
    }

    /// The lines of a collection that is not empty.
    pub(super) fn block(self, value: &Value, indent: usize) -> String {
        match value {
            Value::Object(map) => {
                map.iter().map(|(name, field)| self.entry(name, field, indent)).collect()
            }
            Value::Array(items) => items.iter().map(|item| self.item(item, indent)).collect(),
            scalar => {
                let text = self::scalar(scalar, ScalarStyle::Plain);
                format!("{:indent$}{text}{}", "", self.newline)
            }
        }
    }

    /// A value inside brackets or braces; `flow` is the style of the collection around it.
    pub(super) fn flow(self, value: &Value, flow: Flow) -> String {
        let inner = Flow { lines: flow.lines.map(|column| column + self.step), ..flow };
        match value {
            Value::Object(map) => {
                let entries = map.iter().map(|(name, field)| self.flow_entry(name, field, inner));
                self.brackets('{', &entries.collect::<Vec<_>>(), '}', flow)
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.flow(item, inner));
                self.brackets('[', &items.collect::<Vec<_>>(), ']', flow)
            }
            scalar => self::scalar(scalar, flow.scalars()),
        }
    }

    /// `name: value` inside braces, with the entries in the style `flow`.
    pub(super) fn flow_entry(self, name: &str, value: &Value, flow: Flow) -> String {
        let name = self::scalar(&name.into(), flow.scalars());
        let space = if flow.tight { "" } else { " " };
        format!("{name}:{space}{}", self.flow(value, flow))
    }

    /// `flow` is the style of the line with the closing bracket; the entries are indented one step
    /// more.
    fn brackets(self, open: char, entries: &[String], close: char, flow: Flow) -> String {
        let Some(column) = flow.lines.filter(|_| !entries.is_empty()) else {
            let comma = if flow.tight { "," } else { ", " };
            return format!("{open}{}{close}", entries.join(comma));
        };
        let inner = column + self.step;
        let newline = self.newline;
        let comma = format!(",{newline}{:inner$}", "");
        let entries = entries.join(&comma);
        format!("{open}{newline}{:inner$}{entries}{newline}{:column$}{close}", "", "")
    }
}

impl Flow {
    fn scalars(self) -> ScalarStyle {
        if self.quoted { ScalarStyle::DoubleQuoted } else { ScalarStyle::Plain }
    }
}
