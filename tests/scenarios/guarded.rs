//! Plays a scenario again with the guard, which reviews everything that the user does.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::output::program;
use crate::harness::shorthand::object;
use crate::harness::webhooks::Registration;
use crate::harness::{ControlPlane, Guard, GuardOptions, Output, WebhookOptions, seen, until};
use crate::outcome::Outcome;
use crate::scenario::{Action, Nodes, Scenario};
use crate::scenario_run::{ScenarioRun, Testbed};

/// The guard's reaction to a finding, or the policy that judges in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Refuses the object.
    Deny,
    /// Repairs the object, or refuses it if that is not possible.
    Fix,
    /// Warns.
    Warn,
    /// The standalone policy refuses the object, and no webhook sees it.
    Standalone,
}

impl Mode {
    /// Every mode of the guard.
    pub(crate) const GUARD: [Self; 3] = [Self::Deny, Self::Fix, Self::Warn];

    /// The modes in which the scenario is played.
    pub(crate) fn of(scenario: &Scenario) -> impl Iterator<Item = Self> {
        Self::GUARD.into_iter().chain(scenario.standalone.map(|_| Self::Standalone))
    }

    /// The value of the label [`MODE`], and the prefix of the names of its namespaces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Fix => "fix",
            Self::Warn => "warn",
            Self::Standalone => "standalone",
        }
    }
}

/// The label of the namespaces in which somebody judges.
pub(crate) const MODE: &str = "mode";

/// Chooses the action by the namespaces' names. As in the built-in policy, faults that heal by
/// themselves are not repaired. The account is the one with which [`crate::harness::FakeNodes`]
/// deletes nodes after a scenario.
const POLICY: &str = r#"
fencing:
  accounts: ["system:serviceaccount:kube-system:cluster-autoscaler"]
namespaces:
  - match: {names: ["fix-*"]}
    outcomes: {deadlock: fix, stuck: fix}
  - match: {names: ["warn-*"]}
    outcomes: {deadlock: warn, stuck: warn}
"#;

/// Starts one guard for all scenarios of a control plane, and registers it for all namespaces whose
/// label [`MODE`] is one of [`Mode::GUARD`].
pub(crate) fn start_guard(plane: &ControlPlane) -> (Guard, Registration<'_>) {
    // Many scenarios at once keep the API server busy, which may not confirm a denial in time.
    let options = GuardOptions::default().with(&["--stale=deny"]);
    let guard = plane.guard("scenarios", &options.policy(plane, "scenarios", POLICY));
    let webhooks = WebhookOptions {
        rules: rules(),
        namespaces: json!({ "matchExpressions": [{
            "key": MODE,
            "operator": "In",
            "values": Mode::GUARD.map(Mode::name),
        }] }),
        ..WebhookOptions::new(&guard.url, &[])
    };
    let registration = plane.register_webhooks("scenarios", &webhooks);
    (guard, registration)
}

/// Puts the standalone policy, which refuses, into the API server for the namespaces of its mode, and
/// waits until it refuses a dry run.
pub(crate) fn install_standalone(plane: &ControlPlane) {
    let name = Mode::Standalone.name();
    let namespace = plane.labelled_namespace("policy", &json!({ MODE: name }));
    let mut policies = program(&["policies", "--standalone", "--deny"]);
    let text = String::from_utf8(policies.output().unwrap().stdout).unwrap();
    for mut printed in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
        if printed["kind"] == "ValidatingAdmissionPolicyBinding" {
            printed["spec"]["matchResources"] =
                json!({ "namespaceSelector": { "matchLabels": { MODE: name } } });
        }
        plane.kubectl(&["apply", "-f", "-"], Some(&printed.to_string())).success();
    }
    let claim = object(json!({ "kind": "PersistentVolumeClaim", "name": "data" }));
    plane.kubectl(&["apply", "-n", &namespace, "-f", "-"], Some(&claim.to_string())).success();
    let fault = object(json!({ "kind": "Deployment", "name": "web", "uses": ["data"] }));
    let dry = ["create", "--dry-run=server", "-n", &namespace, "-f", "-"];
    until("the standalone policy", Duration::from_secs(60), || {
        let output = plane.kubectl(&dry, Some(&fault.to_string()));
        seen(output.status != 0, output)
    });
}

/// The result of a scenario with the guard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guarded {
    /// The refusal, which ends the scenario.
    pub(crate) refusal: Option<String>,
    /// The warnings that kubectl printed.
    pub(crate) warnings: Vec<String>,
    /// The outcome if nothing was refused. Only determined if something may have been repaired.
    pub(crate) outcome: Option<Outcome>,
    /// The Multi-Attach events.
    pub(crate) multi_attach: Vec<String>,
    /// The objects that waited at the end, with their reasons.
    pub(crate) waiting: Vec<String>,
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.refusal, self.outcome) {
            (Some(_), _) => write!(f, "refused"),
            (None, Some(outcome)) => write!(f, "{outcome}, {} events", self.multi_attach.len()),
            (None, None) if self.warnings.is_empty() => write!(f, "passes"),
            (None, None) => write!(f, "{} warnings", self.warnings.len()),
        }
    }
}

/// Plays the user's actions to the end, or until one is refused. Nodes do not die here: the guard
/// judges objects, not failures.
///
/// # Errors
///
/// A sentence if an action fails for another reason, or if a refused object was stored
/// nevertheless.
pub(crate) fn play_guarded(
    testbed: &Testbed,
    guard: &Guard,
    scenario: &Scenario,
    mode: Mode,
) -> Result<Guarded, String> {
    let mut run = ScenarioRun::build(testbed, scenario, Some(mode), Nodes::Simulated)?;
    // The module `hurry` tests the answers of a guard that does not know the objects yet.
    guard.until_heard(testbed.plane);
    let mut guarded = Guarded::default();
    let fateless = scenario.steps.iter().take_while(|action| !matches!(action, Action::Die));
    let actions: Vec<&Action> = fateless.collect();
    // No workload exists yet.
    let mut before = BTreeSet::new();
    for (place, action) in actions.iter().enumerate() {
        if let Some(output) = run.act(action)? {
            guarded.warnings.extend(warnings(&output));
            if let Some(refusal) = refusal(&output) {
                let after = run.stored()?;
                if after != before {
                    return Err(format!(
                        "It was refused, yet {before:?} became {after:?}: {refusal}"
                    ));
                }
                guarded.refusal = Some(refusal);
                return Ok(guarded);
            }
            output.done()?;
        }
        let last = place + 1 == actions.len();
        // A write that nobody waits for, too: the guard must know of it before the next one.
        let is_write = action.rests() || matches!(action, Action::ApplyAtOnce(_));
        if is_write && (!last || mode == Mode::Fix) {
            let rest = run.rest()?;
            guarded.outcome = guarded.outcome.max(Some(rest.outcome));
            guarded.multi_attach = rest.multi_attach;
            guarded.waiting = rest.waiting;
        }
        if !last {
            before = if action.rests() { run.generations() } else { run.stored()? };
        }
    }
    if mode != Mode::Fix {
        guarded.outcome = None;
    }
    Ok(guarded)
}

fn refusal(output: &Output) -> Option<String> {
    let denied =
        ["denied the request", "denied request"].iter().any(|words| output.stderr.contains(words));
    denied.then(|| output.stderr.trim().to_owned())
}

fn warnings(output: &Output) -> Vec<String> {
    let lines = output.stderr.lines();
    lines.filter_map(|line| line.strip_prefix("Warning: ")).map(str::to_owned).collect()
}

fn rules() -> Value {
    let rule = |group: &str, resources: &[&str]| {
        json!({
            "operations": ["CREATE", "UPDATE"],
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "resources": resources,
        })
    };
    let apps = [
        "deployments",
        "deployments/scale",
        "statefulsets",
        "statefulsets/scale",
        "replicasets",
        "daemonsets",
    ];
    json!([
        rule("apps", &apps),
        rule("batch", &["jobs", "cronjobs"]),
        rule("", &["persistentvolumeclaims", "pods", "replicationcontrollers"],),
    ])
}
