//! What a command prints.

use std::io::{self, Write};
use std::process::ExitCode;

/// Prints `text` and says with which code the program ends. `what` it is stands in
/// the message should it not be written: "capabilities" for example.
pub(super) fn print(what: &str, text: &[u8]) -> ExitCode {
    match io::stdout().lock().write_all(text) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads it has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("The {what} could not be written: {error}.");
            ExitCode::from(2)
        }
    }
}
