//! What has already happened, and the way to a ReadWriteMany volume.
//!
//! [`diagnosis`] says why pods wait for a volume and which commands help, one file a cause.
//! [`migration`] writes out the steps from one claim to another. Both take what was observed in a
//! cluster (`engine::observed`, `engine::snapshot`) and return plain data, which the command line
//! prints.
//!
//! Nothing here reads a cluster, runs a command or looks at the clock.

pub mod diagnosis;
pub mod migration;
