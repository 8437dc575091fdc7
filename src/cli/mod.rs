//! The commands: their arguments, and what they put together.

pub mod policy_file;
