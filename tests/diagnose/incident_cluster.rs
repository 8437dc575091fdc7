//! The environment that all states share: a control plane with simulated nodes, and the guard as
//! the manifests install it. It refuses in some namespaces, warns in others and is not called for
//! the rest.

use serde_json::{Value, json};

use crate::harness::guard::policy_of;
use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, FakeNodes, Guard};
use crate::install;

/// The guard's reaction to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// It refuses, by the policy of the base.
    Deny,
    /// It warns, by the policy of the overlay `warn-only`.
    WarnOnly,
    /// It is not called.
    Absent,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Deny, Self::WarnOnly, Self::Absent];

    /// The name of the mode in the table, and the prefix of its namespaces and nodes.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::WarnOnly => "warn-only",
            Self::Absent => "absent",
        }
    }
}

/// A control plane with nodes, and a guard for each mode that has one.
pub(crate) struct IncidentCluster {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) nodes: FakeNodes<'static>,
    guards: [(Guard, Registration<'static>); 2],
}

impl IncidentCluster {
    pub(crate) fn new(plane: &'static ControlPlane) -> Self {
        let nodes = plane.fake_nodes();
        let guards = [Mode::Deny, Mode::WarnOnly].map(|mode| {
            let condition = json!({"name": "mode", "expression": asked(mode)});
            let change = |webhook: &mut Value| install::add_condition(webhook, condition.clone());
            install::guard(plane, mode.name(), &policy(mode), &[], change)
        });
        Self { plane, nodes, guards }
    }

    pub(crate) fn nothing_panicked(&self) {
        self.guards.iter().for_each(|(guard, _)| guard.nothing_panicked());
    }
}

/// The condition for calling this guard: the name of the object or its namespace begins with the
/// mode. The guard that refuses is also called for all other objects.
fn asked(mode: Mode) -> String {
    let begins = |other: Mode| {
        let of = |field: &str| {
            format!("(has(request.{field}) && request.{field}.startsWith('{}-'))", other.name())
        };
        format!("({} || {})", of("namespace"), of("name"))
    };
    match mode {
        Mode::Deny => format!("!{} && !{}", begins(Mode::WarnOnly), begins(Mode::Absent)),
        other => begins(other),
    }
}

/// The policy of the base, or of the overlay `warn-only`.
pub(crate) fn policy(mode: Mode) -> String {
    policy_of(match mode {
        Mode::WarnOnly => "components/warn-only/policy.yaml",
        _ => "base/policy.yaml",
    })
}
