//! Sections and code blocks on a page of `docs/`.

use std::fs;

use crate::repository;

/// The section with this name.
pub(crate) fn section(page: &str, name: &str) -> String {
    let page = fs::read_to_string(repository("docs").join(page)).unwrap();
    let (_, section) = page.split_once(&format!("\n## {name}\n")).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

/// The fenced blocks of a text, each with its language.
pub(crate) fn blocks(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap()).collect()
}
