//! The limit on API servers that run on this machine at once, across all test processes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::machine::cores;

/// A place for an API server. There are as many places as this machine has cores, and one more, for
/// all test processes together.
///
/// A process has its own place from its first API server on, and keeps it until its last one ends.
/// For API servers beside the first it takes the one additional place. A process that holds the
/// additional place waits for no other, so no two processes wait for each other. It must end API
/// servers that it no longer needs, because all processes share that place.
pub(crate) struct Place(());

/// The places that this process holds.
struct Taken {
    servers: usize,
    own: Option<File>,
    further: Option<File>,
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken { servers: 0, own: None, further: None });

impl Place {
    /// Waits for a place.
    ///
    /// # Errors
    ///
    /// A sentence if there is no folder for the locks.
    pub(crate) fn take() -> Result<Self, String> {
        let folder = folder()?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.servers == 0 {
            let own: Vec<PathBuf> =
                (0..cores()).map(|number| folder.join(number.to_string())).collect();
            taken.own = Some(lock_one_of(&own)?);
        } else if taken.further.is_none() {
            taken.further = Some(lock_one_of(&[folder.join("further")])?);
        }
        taken.servers += 1;
        Ok(Self(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken.servers -= 1;
        if taken.servers <= 1 {
            taken.further = None;
        }
        if taken.servers == 0 {
            taken.own = None;
        }
    }
}

/// The folder of the locks: in the cache, beside the compiled programs, or else in the temporary
/// folder.
fn folder() -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    cache
        .or(home)
        .into_iter()
        .chain([std::env::temp_dir()])
        .map(|place| place.join("multi-attach-guard/api-servers"))
        .find(|folder| fs::create_dir_all(folder).is_ok() && File::create(folder.join("0")).is_ok())
        .ok_or_else(|| "There is no folder for locks: set XDG_CACHE_HOME.".to_owned())
}

/// Locks one of these files as soon as no other process holds it. Closing the file releases the
/// lock, also at the end of the process.
fn lock_one_of(files: &[PathBuf]) -> Result<File, String> {
    const AGAIN: Duration = Duration::from_millis(200);
    let began = Instant::now();
    let mut opened = files
        .iter()
        .map(|file| File::create(file).map_err(|error| format!("{}: {error}.", file.display())))
        .collect::<Result<Vec<File>, String>>()?;
    loop {
        if let Some(free) = opened.iter().position(|file| file.try_lock().is_ok()) {
            let waited = began.elapsed().as_secs();
            if waited > 0 {
                // Written to the stream itself, which the test runner does not hide; `make times`
                // reads it.
                let _ = writeln!(
                    std::io::stderr().lock(),
                    "Waited {waited} s for a place among the API servers."
                );
            }
            return Ok(opened.swap_remove(free));
        }
        thread::sleep(AGAIN);
    }
}
