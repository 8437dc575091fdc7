//! The phases of a shutdown.

/// How far a shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// Not ready any more, and still answering.
    Draining,
    /// No longer accepting connections.
    Closing,
    Aborted,
}
