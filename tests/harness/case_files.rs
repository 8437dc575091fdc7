//! The files of cases as data: a text, objects in shorthand, or a file that is no text.

use std::fs;
use std::path::Path;
use std::process::Command;

use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use serde_json::Value;

use super::shorthand::Shorthand;

/// A file that is not a text.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Special {
    /// A link to this path.
    Link(String),
    /// This number of bytes, all 0.
    Size(u64),
    /// This number of bytes that cannot be compressed.
    Noise(usize),
    /// A text that is not UTF-8.
    Latin1(String),
    /// A named pipe.
    Pipe(()),
}

impl Special {
    fn make(self, place: &Path) {
        match self {
            Self::Link(target) => std::os::unix::fs::symlink(target, place).unwrap(),
            Self::Size(bytes) => fs::File::create(place).unwrap().set_len(bytes).unwrap(),
            Self::Pipe(()) => {
                assert!(Command::new("mkfifo").arg(place).status().unwrap().success());
            }
            Self::Latin1(text) => {
                let encoded = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap());
                fs::write(place, encoded.collect::<Vec<_>>()).unwrap();
            }
            Self::Noise(bytes) => {
                let mut noise = vec![0; bytes];
                SystemRandom::new().fill(&mut noise).unwrap();
                fs::write(place, noise).unwrap();
            }
        }
    }
}

pub(crate) fn special(file: &Value) -> Option<Special> {
    serde_json::from_value(file.clone()).ok()
}

/// Writes files into a folder, and deletes those that are null.
pub(crate) fn put<'f>(folder: &Path, files: impl IntoIterator<Item = (&'f String, &'f Value)>) {
    for (name, file) in files {
        let place = folder.join(name);
        // All files of a folder, for example of a cache, whatever their names.
        if let Some(all) = name.strip_suffix("/*") {
            for entry in fs::read_dir(folder.join(all)).unwrap() {
                fs::write(entry.unwrap().path(), text(file)).unwrap();
            }
            continue;
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match special(file) {
            _ if file.is_null() => fs::remove_file(place).unwrap(),
            Some(special) => special.make(&place),
            _ => fs::write(place, text(file)).unwrap(),
        }
    }
}

/// The text with all occurrences of the first string, which must occur, replaced by the second.
pub(crate) fn replaced(text: String, edit: Option<&[String; 2]>) -> String {
    let Some([from, to]) = edit else { return text };
    assert!(text.contains(from), "{from:?} is not in {text}");
    text.replace(from, to)
}

/// The text of a file.
pub(crate) fn text(file: &Value) -> String {
    match file {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.contains_key("text") => {
            let edit: [String; 2] = serde_json::from_value(fields["with"].clone()).unwrap();
            replaced(text(&fields["text"]), Some(&edit))
        }
        Value::Array(documents) => {
            let texts: Vec<String> = documents.iter().map(text).collect();
            texts.join("---\n")
        }
        file => serde_norway::to_string(&document(file)).unwrap(),
    }
}

fn document(value: &Value) -> Value {
    if let Some(like) = value.get("like") {
        let mut document = document(like);
        json_patch::merge(&mut document, &value["with"]);
        return document;
    }
    if value.get("kind").is_none() || value.get("apiVersion").is_some() {
        return value.clone();
    }
    let shorthand: Shorthand = serde_json::from_value(value.clone()).unwrap();
    shorthand.manifest()
}
