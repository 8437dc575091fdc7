//! The lines of a pasted text, and the objects that they are about.

use serde::Deserialize;

use super::messages::CATALOG;
use engine::model::event::{Event, Involved};

/// A line of a pasted text.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) about: Involved,
}

/// Kinds of objects in the lines of `kubectl get events`.
const KINDS: [(&str, &str); 2] =
    [("pod", "Pod"), ("persistentvolumeclaim", "PersistentVolumeClaim")];

/// A list of Events.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Events {
    items: Vec<Event>,
}

/// The lines of the text, or the messages of Events in JSON.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let listed = serde_json::from_str::<Events>(text).unwrap_or_default();
    let messages: Vec<Line> = listed
        .items
        .into_iter()
        .chain(serde_json::from_str(text).ok())
        .filter(|event: &Event| !event.message.is_empty())
        .map(|event| Line { text: event.message.replace('\n', " "), about: event.involved_object })
        .collect();
    if messages.is_empty() { printed(text) } else { messages }
}

/// The lines of a text that kubectl or a log has printed. What mount(8) says in further lines is one
/// line with the error that quotes it.
fn printed(text: &str) -> Vec<Line> {
    let mut about = Involved::default();
    let mut lines: Vec<Line> = Vec::new();
    for line in text.lines() {
        match line.split_once(':') {
            Some(("Name", name)) => {
                about = Involved { name: name.trim().into(), ..Involved::default() };
            }
            Some(("Namespace", namespace)) => about.namespace = namespace.trim().into(),
            // Fields that `kubectl describe` prints of one kind.
            Some(("Node", _)) => about.kind = "Pod".into(),
            Some(("StorageClass", _)) => about.kind = "PersistentVolumeClaim".into(),
            _ => {}
        }
        let line = line.trim();
        let beginning = line.to_lowercase();
        match lines.last_mut() {
            Some(last) if CATALOG.continued.iter().any(|words| beginning.starts_with(words)) => {
                last.text.extend([" ", line]);
            }
            _ => lines.push(Line {
                text: line.replace("\\\"", "\""),
                about: in_table(line).unwrap_or_else(|| about.clone()),
            }),
        }
    }
    lines
}

/// The object in a line of `kubectl get events`: `pod/web-1`.
fn in_table(line: &str) -> Option<Involved> {
    line.split_whitespace().filter_map(|word| word.split_once('/')).find_map(|(word, name)| {
        let (_, kind) = KINDS.iter().find(|(resource, _)| *resource == word)?;
        Some(Involved { kind: (*kind).into(), name: name.into(), ..Involved::default() })
    })
}
