//! The table that a suite prints of what it has seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Rows by their place.
#[derive(Clone, Default)]
pub(crate) struct Table(Arc<Mutex<BTreeMap<usize, String>>>);

impl Table {
    pub(crate) fn add(&self, place: usize, cells: &[&str]) {
        let row = format!("| {} |", cells.join(" | "));
        self.0.lock().unwrap().insert(place, row);
    }

    /// Prints it, unless it is empty; says how many rows it has.
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
