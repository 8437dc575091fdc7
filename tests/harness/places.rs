//! How many API servers run on this machine at once, whoever tests.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::machine::cores;

/// A place for an API server. There are as many as this machine has cores, and one more,
/// whatever processes run tests.
///
/// A process has a place of its own from its first API server on, and keeps it until it has
/// none. For those beside the first it takes the place that is left over, and then waits for
/// nothing; so no two processes wait for each other. It ends what it does not need any more, as
/// that place is then for all of them.
pub(crate) struct Place(());

/// What this process has.
struct Taken {
    servers: usize,
    own: Option<File>,
    further: Option<File>,
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken {
    servers: 0,
    own: None,
    further: None,
});

impl Place {
    /// Waits for a place.
    ///
    /// # Errors
    ///
    /// A sentence when there is no folder for the locks.
    pub(crate) fn take() -> Result<Self, String> {
        let folder = folder()?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.servers == 0 {
            let own: Vec<PathBuf> = (0..cores()).map(|it| folder.join(it.to_string())).collect();
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

/// Where the locks are: beside the compiled programs, or where that cannot be written.
fn folder() -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let places = cache.or(home).into_iter().chain([std::env::temp_dir()]);
    let mut places = places.map(|place| place.join("multi-attach-guard/api-servers"));
    places
        .find(|folder| fs::create_dir_all(folder).is_ok() && File::create(folder.join("0")).is_ok())
        .ok_or_else(|| "There is no folder for locks: set XDG_CACHE_HOME.".to_owned())
}

/// Locks the first of these files that nobody else has, as soon as there is one. The lock goes
/// when the file is closed, which a process's end does too.
fn lock_one_of(files: &[PathBuf]) -> Result<File, String> {
    const AGAIN: Duration = Duration::from_millis(200);
    let began = Instant::now();
    let opened: Result<Vec<File>, String> = files
        .iter()
        .map(|file| File::create(file).map_err(|error| format!("{}: {error}.", file.display())))
        .collect();
    let mut opened = opened?;
    loop {
        if let Some(free) = opened.iter().position(|file| file.try_lock().is_ok()) {
            let waited = began.elapsed().as_secs();
            if waited > 0 {
                // Written to the stream itself, which the test runner does not swallow;
                // `make times` reads it.
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
