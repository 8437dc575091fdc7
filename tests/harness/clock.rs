//! The clock of a program, which libfaketime changes.

use std::path::PathBuf;

use super::{ControlPlane, GuardOptions, skip};

/// A clock that programs with [`Self::faked`] options share.
pub(crate) struct Clock {
    library: String,
    /// The file with the difference from the real time.
    offset: PathBuf,
}

impl Clock {
    /// A clock that is right, or `None` without libfaketime.
    pub(crate) fn new(plane: &ControlPlane, name: &str) -> Option<Self> {
        let offset = plane.write_file(&format!("{name}.clock"), "+0");
        Some(Self { library: library()?, offset })
    }

    /// Sets it off by this, for example `+10h` or `-100d`.
    pub(crate) fn set(&self, offset: &str) {
        std::fs::write(&self.offset, offset).unwrap();
    }

    /// The options with this clock.
    pub(crate) fn faked(&self, mut options: GuardOptions) -> GuardOptions {
        let environment = [
            ("LD_PRELOAD", self.library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", self.offset.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            // The uptime of a machine cannot be set.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        options
            .environment
            .extend(environment.map(|(name, value)| (name.to_owned(), value.to_owned())));
        options
    }
}

/// The library that changes a program's clock, at the path that Debian uses.
pub(crate) fn library() -> Option<String> {
    let found = std::fs::read_dir("/usr/lib").ok()?.find_map(|folder| {
        let file = folder.ok()?.path().join("faketime/libfaketimeMT.so.1");
        file.exists().then(|| file.display().to_string())
    });
    found.or_else(|| skip("The package libfaketime is not installed."))
}
