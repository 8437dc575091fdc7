//! The code that the benches share.

#![allow(dead_code, reason = "each bench uses only a part of what is shared")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

pub(crate) mod cluster;
pub(crate) mod knots;
pub(crate) mod reviews;
