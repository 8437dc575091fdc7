//! Facts about a cluster and the objects in it, as plain values.

pub mod access_mode;

/// A short string, kept inline up to 24 bytes.
pub type Text = compact_str::CompactString;
