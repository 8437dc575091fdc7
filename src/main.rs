//! The command line of multi-attach-guard.

use std::process::ExitCode;

use multi_attach_guard::cli;

/// The memory allocator. That of musl is slow and makes its threads wait for each other; with that
/// of glibc a review takes 5 % longer.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // This fails only if a provider is already installed, and nothing ran before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli::parse() {
        Ok(cli) => cli::run(&cli),
        Err(code) => code,
    }
}
