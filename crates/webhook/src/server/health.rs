//! Whether the server is ready, and what it says about itself.

/// How far a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// Met.
    Ready,
    /// Met, though something needs attention: answers are still right as far
    /// as the server can know.
    Degraded,
    /// Not met: the server must get no requests.
    NotReady,
}

impl HealthState {
    /// The word at the start of a line of `/readyz`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::NotReady => "not-ready",
        }
    }
}

/// One thing that readiness depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// A short fixed name, such as `view`: it is a label of a metric.
    pub name: &'static str,
    /// How far it is met.
    pub state: HealthState,
    /// A sentence that says why, on one line.
    pub message: String,
}

impl Readiness {
    /// A condition that is met.
    pub fn ready(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, HealthState::Ready, message)
    }

    /// A condition that is met though something needs attention.
    pub fn degraded(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, HealthState::Degraded, message)
    }

    /// A condition that is not met.
    pub fn not_ready(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, HealthState::NotReady, message)
    }

    fn new(name: &'static str, state: HealthState, message: impl Into<String>) -> Self {
        Self {
            name,
            state,
            message: message.into(),
        }
    }
}

/// Something that readiness depends on.
///
/// Called for each `/readyz` and `/metrics`, so it must return at once, with what it
/// knows, and the same name every time.
pub type HealthSource = dyn Fn() -> Readiness + Send + Sync;
