//! Diagnoses as one JSON object.

use std::io::{self, Write};

use serde::Serialize;

use super::super::safe;
use super::Diagnosis;
use doctor::diagnosis::CaseEntry;

#[derive(Serialize)]
struct Json<'a> {
    cases: &'a [CaseEntry],
    open: &'a [String],
    notes: &'a [String],
}

pub(super) fn write(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    let json = Json {
        cases: &diagnosis.cases,
        open: &diagnosis.open,
        notes: &diagnosis.notes,
    };
    out.write_all(safe::json(&json)?.as_bytes())
}
