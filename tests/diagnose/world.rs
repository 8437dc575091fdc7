//! What all states share: a control plane with simulated nodes, and the guard as the
//! manifests install it, which refuses in some namespaces, warns in others and is not asked
//! about the rest.

use serde_json::{Value, json};

use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, FakeNodes, Guard, GuardOptions};
use crate::install;

/// What the guard does where a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// It refuses, as the base does.
    Deny,
    /// It warns, as the overlay `warn-only` does.
    WarnOnly,
    /// It is not asked.
    Absent,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Deny, Self::WarnOnly, Self::Absent];

    /// How the table calls it, and how the names of its namespaces and nodes begin.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::WarnOnly => "warn-only",
            Self::Absent => "absent",
        }
    }
}

/// A control plane with nodes, and a guard for each mode that has one.
pub(crate) struct World {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) nodes: FakeNodes<'static>,
    guards: [(Guard, Registration<'static>); 2],
}

impl World {
    pub(crate) fn new(plane: &'static ControlPlane) -> Self {
        let nodes = plane.fake_nodes();
        let kubeconfig = install::account(plane).display().to_string();
        let guards = [Mode::Deny, Mode::WarnOnly].map(|mode| {
            let name = mode.name();
            let policy = plane.write_file(&format!("{name}.policy.yaml"), &policy(mode));
            let options = GuardOptions {
                arguments: vec![format!("--config={}", policy.display())],
                environment: vec![("KUBECONFIG".to_owned(), kubeconfig.clone())],
                ..GuardOptions::default()
            };
            let guard = plane.guard(name, &options);
            let registration = plane.register_configurations(
                name,
                &guard.url,
                webhooks("MutatingWebhookConfiguration", mode),
                webhooks("ValidatingWebhookConfiguration", mode),
            );
            (guard, registration)
        });
        Self {
            plane,
            nodes,
            guards,
        }
    }

    /// A guard goes on after a panic, and a client only sees that its webhook failed.
    ///
    /// # Panics
    ///
    /// When it did, with what its log says of it.
    pub(crate) fn nothing_panicked(&self) {
        for (guard, _) in &self.guards {
            let log = guard.program.log();
            let panics: Vec<&str> = log.lines().filter(|it| it.contains("panic")).collect();
            assert!(panics.is_empty(), "The guard panicked: {panics:#?}");
        }
    }
}

/// What `manifests/` registers, for objects whose own or whose namespace's name begins with
/// the mode; what names none is the guard's that refuses.
fn webhooks(kind: &str, mode: Mode) -> Value {
    let mut configuration = install::webhooks(kind);
    let begins = |other: Mode| {
        let of = |field: &str| {
            let begins = format!("request.{field}.startsWith('{}-')", other.name());
            format!("(has(request.{field}) && {begins})")
        };
        format!("({} || {})", of("namespace"), of("name"))
    };
    let expression = match mode {
        Mode::Deny => format!("!{} && !{}", begins(Mode::WarnOnly), begins(Mode::Absent)),
        other => begins(other),
    };
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        let conditions = webhook["matchConditions"].as_array_mut().unwrap();
        conditions.push(json!({"name": "mode", "expression": expression}));
    }
    configuration
}

/// The policy of the base, or of the overlay `warn-only`.
pub(crate) fn policy(mode: Mode) -> String {
    let map = match mode {
        Mode::WarnOnly => include_str!("../../manifests/components/warn-only/policy.yaml"),
        _ => include_str!("../../manifests/base/policy.yaml"),
    };
    let map: Value = serde_saphyr::from_str(map).unwrap();
    map["data"]["policy.yaml"].as_str().unwrap().to_owned()
}
