//! The table of observations that a suite prints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Rows by their position.
#[derive(Clone, Default)]
pub(crate) struct Table(Arc<Mutex<BTreeMap<usize, String>>>);

impl Table {
    pub(crate) fn add(&self, place: usize, cells: &[&str]) {
        let row = format!("| {} |", cells.join(" | "));
        self.0.lock().unwrap().insert(place, row);
    }

    /// Prints the table, unless it is empty; returns its number of rows.
    pub(crate) fn print(&self, head: &[&str]) -> usize {
        let rows = self.0.lock().unwrap();
        if !rows.is_empty() {
            println!("| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
            rows.values().for_each(|row| println!("{row}"));
            println!();
        }
        rows.len()
    }
}
