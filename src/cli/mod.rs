//! The commands: their arguments, and what they put together.

mod logging;
pub mod policy_file;
mod serve;

pub use logging::{LogFormat, LogOptions};
pub use serve::{CertificateOptions, ServeError, ServeOptions, serve};
