//! How far the server has come on its way to a clean end.

/// How far a shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    Draining,
    Aborted,
}
