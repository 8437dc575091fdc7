//! The phases of a shutdown.

/// The progress of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// The server is no longer ready, but still answers.
    Draining,
    /// The server no longer accepts connections.
    Closing,
    Aborted,
}
