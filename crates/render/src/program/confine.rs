//! `multi-attach-guard confine`: starts a program that can read, write and start only the given
//! files. Only `check` starts it; it restricts itself, then becomes the program.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::Args;

/// The output, without a program to start, if Landlock is in force.
pub(super) const IN_FORCE: &str = "Landlock";

/// The rights of a program.
#[derive(Args, Clone, Debug)]
pub struct ConfineOptions {
    /// A file or a folder that it may read
    #[arg(long)]
    pub read: Vec<PathBuf>,

    /// A folder that it may read and write
    #[arg(long)]
    pub write: Vec<PathBuf>,

    /// A file or a folder that it may read and start
    #[arg(long)]
    pub start: Vec<PathBuf>,

    /// The most bytes of memory
    #[arg(long)]
    pub memory: Option<u64>,

    /// The most bytes of a file that it writes
    #[arg(long)]
    pub file_size: Option<u64>,

    /// The program and its arguments
    #[arg(last = true)]
    pub program: Vec<OsString>,
}

/// Becomes the program. Returns if there is no program to become.
///
/// # Errors
/// The program cannot be started, or not with these restrictions.
#[cfg(target_os = "linux")]
pub fn confine(options: &ConfineOptions) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    super::run::set_limits(None, options.memory, options.file_size)?;
    let is_restricted = restrict(options).map_err(io::Error::other)?;
    let Some((program, arguments)) = options.program.split_first() else {
        let said = if is_restricted { IN_FORCE } else { "nothing" };
        return writeln!(io::stdout(), "{said}");
    };
    Err(Command::new(program).args(arguments).exec())
}

/// Whether the kernel restricts this process from now on.
#[cfg(target_os = "linux")]
fn restrict(options: &ConfineOptions) -> Result<bool, landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
        Scope, path_beneath_rules,
    };

    // Older kernels restrict the accesses that they know.
    const KNOWN: ABI = ABI::V6;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_all(KNOWN) & !AccessFs::Execute;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .add_rules(path_beneath_rules(&options.read, read))?
        .add_rules(path_beneath_rules(&options.write, write))?
        .add_rules(path_beneath_rules(&options.start, read | AccessFs::Execute))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Other systems have no Landlock, and `check` does not start this command on them.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine(_options: &ConfineOptions) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
