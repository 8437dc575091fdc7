//! What has already happened, and the way to a ReadWriteMany volume.

pub mod diagnosis;
pub mod migration;
