//! Admission reviews and the server that takes them.

pub mod admission;
pub mod server;
