//! External programs: their command lines, and the restrictions on them.

pub(crate) mod command_line;
pub(crate) mod confine;
mod executable;
pub(crate) mod group;
pub(crate) mod run;
pub(crate) mod sandbox;
