//! The readiness of the server, and the reasons for it.

engine::words! {
    /// The degree to which a condition is met, as the first word of a line of `/readyz`.
    HealthState {
        /// The condition is met.
        Ready = "ready",
        /// The condition is met, but something needs attention: answers are still right as far as
        /// the server can know.
        Degraded = "degraded",
        /// The condition is not met: the server must get no requests.
        NotReady = "not-ready",
    }
}

/// A condition on which readiness depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// A short fixed name, such as `view`: it is a label of a metric.
    pub name: &'static str,
    /// The degree to which it is met.
    pub state: HealthState,
    /// The reason, as a sentence on one line.
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
        Self { name, state, message: message.into() }
    }
}

/// A source of a condition on which readiness depends.
///
/// It is called for each `/readyz` and `/metrics`, so it must return at once, from what it knows,
/// and with the same name every time.
pub type HealthSource = dyn Fn() -> Readiness + Send + Sync;
