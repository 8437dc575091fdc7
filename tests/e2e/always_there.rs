//! Every case once more, with the policies in the API server: as a user whom the guard's
//! webhooks see, and as one for whom the guard is away. `docs/always-there.md` has the table;
//! `TABLE=write cargo test --test e2e -- policies` writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::rules::codes;
use libtest_mimic::Failed;
use serde_json::json;

use crate::case::{self, Case, Step};
use crate::harness::{Output, wait_until};
use crate::install::AWAY;
use crate::play::{Stage, can_be_dry};
use crate::said::denied;
use crate::world::{self, World};

/// Cases at once.
const AT_ONCE: usize = 4;

/// How long the guard may take to write the facts of all cases: ten namespaces a second.
const WITHIN: Duration = Duration::from_secs(300);

/// The rules whose denials the policies know.
const COMPILED: [&str; 4] = [
    codes::ROLLING_UPDATE_OVERLAP,
    codes::REPLICAS_SHARE_VOLUME,
    codes::SINGLE_POD_VOLUME,
    codes::AUTOSCALER_EXCEEDS_VOLUME,
];

const PAGE: &str = "docs/always-there.md";
const BEGIN: &str = "<!-- cases -->\n";
const END: &str = "<!-- end of cases -->\n";

/// A denial that a case expects, and who gives it.
struct Row {
    name: String,
    rules: String,
    is_compiled: bool,
    speaks: &'static str,
    is_refused_away: bool,
}

/// What all threads find.
#[derive(Default)]
struct Found {
    rows: BTreeMap<(usize, usize), Row>,
    faults: Vec<String>,
    judged: usize,
}

pub(crate) fn play() -> Result<(), Failed> {
    let Some(world) = world::with_policies() else {
        return Ok(());
    };
    let cases = case::all();
    let stages: Result<Vec<Stage<'_>>, String> =
        cases.iter().map(|case| Stage::set(world, case)).collect();
    let stages = stages?;
    let found = Mutex::new(Found::default());
    let rounds = cases.iter().map(|case| case.steps().count()).max();
    for round in 0..rounds.unwrap_or_default() {
        until_facts_are_current(world, round)?;
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let (Some(case), Some(stage)) = (cases.get(at), stages.get(at)) else {
                            return;
                        };
                        if let Some(step) = case.steps().nth(round) {
                            take(stage, case, step, (at, round), &found);
                        }
                    }
                });
            }
        });
    }
    let found = found.into_inner()?;
    let table = found.table();
    println!("{table}");
    if !found.faults.is_empty() {
        return Err(found.faults.join("\n").into());
    }
    let compiled = found.rows.values().filter(|row| row.is_compiled);
    let (refused, all) = compiled.fold((0, 0), |(refused, all), row| {
        (refused + usize::from(row.is_refused_away), all + 1)
    });
    // The others depend on what policies do not see: overrides, owners, claims and autoscalers
    // that come after their workloads.
    if refused * 2 < all {
        return Err(format!("Only {refused} of {all} denials are given while away.").into());
    }
    write(&table)
}

/// Waits until the guard has twice looked at the cluster and written what it saw: the second
/// look began after everything that was there before.
fn until_facts_are_current(world: &World, round: usize) -> Result<(), String> {
    let namespace = world.namespace("marker")?;
    for look in ["first", "second"] {
        let name = format!("{look}-{round}");
        let claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "disk",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        world.make(&namespace, &claim)?;
        let path = format!("-o=jsonpath={{.spec.claims.{name}}}");
        let arguments = ["get", "volumefacts", "volumes", "-n", &namespace, &path];
        wait_until("the facts", WITHIN, || {
            let output = world.plane.kubectl(&arguments, None);
            match output.stdout.is_empty() {
                true => Err(format!("{output:?}")),
                false => Ok(()),
            }
        })?;
    }
    Ok(())
}

/// Takes a step dry as both users, and then as the one whom the guard sees.
fn take(stage: &Stage<'_>, case: &Case, step: &Step, place: (usize, usize), found: &Mutex<Found>) {
    if can_be_dry(&step.r#do) {
        let outputs = [None, Some(AWAY)].map(|user| stage.run_as(user, &step.r#do, true));
        let mut found = found.lock().unwrap();
        match outputs {
            [Ok(there), Ok(away)] => found.compare(case, step, place, &there, &away),
            outputs => found.faults.push(format!("{}: {outputs:?}", case.name())),
        }
    }
    if place.1 + 1 < case.steps().count() {
        // What it comes to is what the next step finds.
        let _ = stage.run(&step.r#do, false);
    }
}

/// Who refuses: the API server by a policy, or the guard.
fn speaker(output: &Output) -> Option<&'static str> {
    let says = |text: &str| output.stderr.contains(text);
    match output.status {
        0 => None,
        _ if says("ValidatingAdmissionPolicy") => Some("policy"),
        _ if says("admission webhook") => Some("webhook"),
        _ => None,
    }
}

impl Found {
    fn compare(
        &mut self,
        case: &Case,
        step: &Step,
        place: (usize, usize),
        there: &Output,
        away: &Output,
    ) {
        self.judged += 1;
        let name = format!("{}, step {}", case.name(), place.1 + 1);
        let mut fault = |text: &str| {
            self.faults
                .push(format!("{name}: {text}\n{there:#?}\n{away:#?}"));
        };
        println!("TEXT {name}\n  THERE {}\n  AWAY {}", there.stderr.trim(), away.stderr.trim());
        let expected = &step.expect.denied;
        let refused_away = speaker(away) == Some("policy");
        if refused_away && !step.expect.is_refusal() {
            fault("a policy refuses what the webhook allows");
        }
        if expected.is_empty() {
            return;
        }
        let Some(speaks) = speaker(there) else {
            // Tried dry, the objects before it in one file are not stored.
            return;
        };
        let denials = ["denied request: ", "denied the request: "]
            .map(|text| there.stderr.matches(text).count());
        if denials.iter().sum::<usize>() != 1 {
            fault("not one denial");
        }
        if !denied(&there.stderr).all(|rule| expected.contains(rule)) {
            fault("the denial names another rule");
        }
        let compiled = expected
            .iter()
            .any(|rule| COMPILED.contains(&rule.as_str()));
        let rules: Vec<&str> = expected.iter().map(String::as_str).collect();
        let row = Row {
            name: format!("{} | {}", case.kind, case.operation),
            rules: rules.join(", "),
            is_compiled: compiled,
            speaks,
            is_refused_away: refused_away,
        };
        self.rows.insert(place, row);
    }

    fn table(&self) -> String {
        let count =
            |keep: &dyn Fn(&Row) -> bool| self.rows.values().filter(|row| keep(row)).count();
        let all = count(&|row| row.is_compiled);
        let refused = count(&|row| row.is_compiled && row.is_refused_away);
        let of_webhook = count(&|row| !row.is_compiled);
        let mut text = format!(
            "Of {} steps, {} end in a denial. {all} of these are of a rule that the policies know; \
             with the guard away, {refused} of them are refused all the same. {of_webhook} are of \
             other rules, which only the webhook knows. No policy refuses what the webhook allows.\n\n",
            self.judged,
            self.rows.len(),
        );
        text +=
            "| case | | rules | guard there: who refuses | guard away |\n|---|---|---|---|---|\n";
        for row in self.rows.values() {
            let Row {
                name,
                rules,
                speaks,
                ..
            } = row;
            let away = match (row.is_refused_away, row.is_compiled) {
                (true, _) => "refused",
                (false, true) => "**passes**",
                (false, false) => "passes",
            };
            let _ = writeln!(text, "| {name} | {rules} | {speaks} | {away} |");
        }
        text
    }
}

/// Writes the table into the page, if that is wanted: a new case changes it.
fn write(table: &str) -> Result<(), Failed> {
    if std::env::var_os("TABLE").is_none_or(|it| it != "write") {
        return Ok(());
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path)?;
    let (before, rest) = page
        .split_once(BEGIN)
        .ok_or("the page has no place for the table")?;
    let (_, after) = rest
        .split_once(END)
        .ok_or("the page has no end of the table")?;
    Ok(std::fs::write(
        &path,
        format!("{before}{BEGIN}\n{table}\n{END}{after}"),
    )?)
}
