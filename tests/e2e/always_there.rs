//! Runs every case again with the policies in the API server: as a user whose requests reach the
//! guard's webhooks, as one whose requests do not, as if the guard were down, and as one in a cluster
//! that has the standalone policy alone. `docs/evidence/always-there.md` has the tables; `TABLE=write cargo test --workspace --test e2e -- policies`
//! writes it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::json;

use crate::case::{self, Case, Step};
use crate::case_run::{CaseRun, can_be_dry};
use crate::guarded_cluster::{self, GuardedCluster};
use crate::harness::shorthand::object;
use crate::harness::uncertain::Uncertain;
use crate::harness::{Namespace, Output, at_once, seen, wait_until};
use crate::install::{ALONE, AWAY, STANDALONE};
use crate::said::denied;

/// The number of cases that run at once.
const AT_ONCE: usize = 4;

/// The time that the guard may take to write the facts of all cases: ten namespaces per second.
const WITHIN: Duration = Duration::from_secs(300);

const PAGE: &str = "docs/evidence/always-there.md";
const BEGIN: &str = "<!-- cases -->\n";
const END: &str = "<!-- end of cases -->\n";
const STANDALONE_BEGIN: &str = "<!-- standalone -->\n";
const STANDALONE_END: &str = "<!-- end of standalone -->\n";

/// A denial that a case expects.
struct Row {
    /// The row of the table.
    text: String,
    /// The component that refuses while the guard is away.
    speaks_away: Option<Speaker>,
}

/// The component that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    /// A policy in the API server.
    Policy,
    /// The guard.
    Webhook,
    /// The API server itself, because the object is invalid.
    Kubernetes,
}

/// The answers to users for one step.
#[derive(Debug)]
struct Seen {
    /// For the user without the guard.
    away: Output,
    /// For the user without policies; only if one refused the step.
    alone: Option<Output>,
    /// For the user with both; only if a denial is expected.
    there: Option<Output>,
    /// For the user with the standalone policy.
    standalone: Output,
}

/// The results of all threads.
#[derive(Default)]
struct Found {
    rows: BTreeMap<(usize, usize), Row>,
    faults: Vec<String>,
    judged: usize,
    /// The number of denials that have the same text from the policy and from the webhook.
    alike: usize,
    standalone: Standalone,
}

/// The answers of the standalone policy beside those of the guard.
#[derive(Default)]
struct Standalone {
    /// The number of refusals where the guard denies.
    denied: usize,
    /// The number of refusals where the guard repairs or warns.
    named: usize,
    /// The number of denials of Deployments that the policy does not give.
    missed: usize,
    /// The rows of the steps in which only one of the two sees a fault.
    differences: BTreeMap<(usize, usize), String>,
}

impl Standalone {
    fn excess(&self) -> impl Iterator<Item = &String> {
        self.differences.values().filter(|row| row.contains("**refused**"))
    }

    fn table(&self) -> String {
        let mut text = format!(
            "The standalone policy refuses {} steps that the guard denies, and {} that it repairs or \
             warns about. It passes {} denials of Deployments, and refuses {} steps in which the guard \
             sees no fault.\n\n\
             | object | step | the guard | the standalone policy |\n|---|---|---|---|\n",
            self.denied,
            self.named,
            self.missed,
            self.excess().count(),
        );
        for row in self.differences.values() {
            text += row;
            text.push('\n');
        }
        text
    }
}

pub(crate) fn play() -> Result<(), Failed> {
    let Some((_plane, cluster)) = guarded_cluster::with_policies() else {
        return Ok(());
    };
    let cluster = &cluster;
    let cases = case::all();
    let runs: Vec<CaseRun> =
        cases.iter().map(|case| CaseRun::set(cluster, case)).collect::<Result<_, String>>()?;
    let found = Mutex::new(Found::default());
    let rounds = cases.iter().map(|case| case.steps().count()).max();
    for round in 0..rounds.unwrap_or_default() {
        until_facts_are_current(cluster, round)?;
        at_once(AT_ONCE, &runs, |at, run| {
            if let Some(step) = cases[at].steps().nth(round) {
                take(run, &cases[at], step, (at, round), &found);
            }
        });
    }
    cluster.guard.nothing_panicked();
    let found = found.into_inner()?;
    let (table, standalone) = (found.table(), found.standalone.table());
    println!("{table}\n{standalone}");
    if !found.faults.is_empty() {
        return Err(found.faults.join("\n").into());
    }
    write(&table, &standalone, &found)
}

/// Waits until the guard has read the cluster and written the facts twice. The second reading began
/// after all earlier objects were created.
fn until_facts_are_current(cluster: &GuardedCluster, round: usize) -> Result<(), String> {
    let namespace = Namespace::new(cluster.plane, "marker");
    for look in ["first", "second"] {
        let name = format!("{look}-{round}");
        let claim = object(json!({"kind": "PersistentVolumeClaim", "name": name}));
        cluster.make(&namespace, &claim)?;
        let path = format!("-o=jsonpath={{.spec.claims.{name}}}");
        let arguments = ["get", "volumefacts", "volumes", &path];
        wait_until("the facts", WITHIN, || {
            let output = namespace.kubectl(&arguments, None);
            seen(!output.stdout.is_empty(), output)
        })?;
    }
    Ok(())
}

/// Runs a step as a dry run for each user whose answers are compared, then really as the user that
/// the guard sees.
fn take(run: &CaseRun, case: &Case, step: &Step, place: (usize, usize), found: &Mutex<Found>) {
    if can_be_dry(&step.r#do) {
        let run = |user| run.execute(user, &step.r#do, true);
        let seen = run(Some(AWAY)).and_then(|away| {
            let is_refused = speaker(&away) == Some(Speaker::Policy);
            let alone = is_refused.then(|| run(Some(ALONE))).transpose()?;
            let is_expected = !step.expect.denied.is_empty();
            let there = is_expected.then(|| run(None)).transpose()?;
            let standalone = run(Some(STANDALONE))?;
            Ok(Seen { away, alone, there, standalone })
        });
        let mut found = found.lock().unwrap();
        match seen {
            Ok(seen) => found.compare(case, step, place, &seen),
            Err(fault) => found.faults.push(format!("{}: {fault}", case.name())),
        }
    }
    if place.1 + 1 < case.steps().count() {
        // The next step checks the result.
        let _ = run.execute(None, &step.r#do, false);
    }
}

/// The component that refuses, if any.
fn speaker(output: &Output) -> Option<Speaker> {
    let says = |text: &str| output.stderr.contains(text);
    match output.status {
        0 => None,
        _ if says("ValidatingAdmissionPolicy") => Some(Speaker::Policy),
        _ if says("admission webhook") => Some(Speaker::Webhook),
        _ if says(" is invalid: ") => Some(Speaker::Kubernetes),
        _ => None,
    }
}

/// The notes about a workload without pods.
const NO_PODS: [&str; 3] = [
    " (0 replicas, judged as with 1)",
    " It has no pods now, and is judged as with one.",
    " (once it has pods)",
];

/// The first finding of a denial. A policy has one sentence; the webhook may add others below. The
/// number of nodes is left out, because other cases create and delete nodes at the same time.
fn words(output: &Output) -> Option<String> {
    let (_, denial) = ["denied request: ", "denied the request: "]
        .iter()
        .find_map(|before| output.stderr.split_once(before))?;
    // Each says in a place of its own that a workload without pods is judged as with one.
    let sentence = NO_PODS
        .iter()
        .fold(denial.lines().next()?.to_owned(), |sentence, note| sentence.replace(note, ""));
    Some(match sentence.split_once(" nodes are eligible") {
        Some((before, after)) => {
            [before.trim_end_matches(|c: char| c.is_ascii_digit()), after].concat()
        }
        None => sentence,
    })
}

/// Whether only the ways out differ, because the webhook saw that the manifest states no strategy.
fn differ_in_the_way_out(away: &Output, alone: &Output) -> bool {
    let [by_policy, by_webhook] = [away, alone].map(|output| words(output).unwrap_or_default());
    by_webhook.contains(". Ship it now (")
        && by_policy.contains(". Set strategy.type to ")
        && by_webhook.split(';').next() == by_policy.split(". Set ").next()
}

impl Found {
    fn compare(&mut self, case: &Case, step: &Step, place: (usize, usize), seen: &Seen) {
        let Seen { away, alone, there, standalone } = seen;
        self.judged += 1;
        self.compare_standalone(case, step, place, speaker(standalone) == Some(Speaker::Policy));
        let name = format!("{}, step {}", case.name(), place.1 + 1);
        let mut fault = |text: &str| {
            self.faults.push(format!("{name}: {text}\n{seen:#?}"));
        };
        let expected = &step.expect.denied;
        let speaks_away = speaker(away);
        if let Some(alone) = alone {
            match speaker(alone) {
                Some(Speaker::Webhook)
                    if words(away) == words(alone) || differ_in_the_way_out(away, alone) =>
                {
                    self.alike += 1;
                }
                Some(Speaker::Webhook) => fault("the words differ"),
                // Objects with an owner are created by their controller in either run.
                Some(Speaker::Policy) => {}
                _ => fault("a policy refuses what the webhook allows"),
            }
        }
        // In a dry run, the objects before it in the same file are not stored, so it may pass.
        let Some((there, speaks)) =
            there.as_ref().and_then(|output| Some((output, speaker(output)?)))
        else {
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
        let rules: Vec<&str> = expected.iter().map(String::as_str).collect();
        let uncertain = step.uncertain.or_else(|| Uncertain::of_rules(rules.iter().copied()));
        match (speaks_away, uncertain) {
            (Some(_), Some(_)) => fault("it is refused, though it is called uncertain"),
            (None, None) => fault("it passes, and nothing says why"),
            _ => {}
        }
        let speaks = match speaks {
            Speaker::Policy => "policy",
            Speaker::Webhook => "webhook",
            Speaker::Kubernetes => "Kubernetes",
        };
        let without_guard = match (speaks_away, uncertain) {
            (Some(Speaker::Kubernetes), _) => "refused by Kubernetes".to_owned(),
            (Some(_), _) => "refused".to_owned(),
            (None, why) => format!("passes: {}", why.map_or("?", Uncertain::reason)),
        };
        let (kind, operation, rules) = (&case.kind, &case.operation, rules.join(", "));
        let row = Row {
            text: format!("| {kind} | {operation} | {rules} | {speaks} | {without_guard} |"),
            speaks_away,
        };
        self.rows.insert(place, row);
    }

    fn compare_standalone(
        &mut self,
        case: &Case,
        step: &Step,
        place: (usize, usize),
        refuses: bool,
    ) {
        let (kind, operation) = (&case.kind, &case.operation);
        let expected = &step.expect;
        let is_named = !expected.warned.is_empty() || !expected.fixed.is_empty();
        let row = match (expected.denied.is_empty(), refuses) {
            (false, true) => {
                self.standalone.denied += 1;
                return;
            }
            (true, true) if is_named => {
                self.standalone.named += 1;
                return;
            }
            (false, false) if kind == "Deployment" => {
                let rules: Vec<&str> = expected.denied.iter().map(String::as_str).collect();
                self.standalone.missed += 1;
                format!("| {kind} | {operation} | {} | passes |", rules.join(", "))
            }
            (true, true) => format!("| {kind} | {operation} | passes | **refused** |"),
            _ => return,
        };
        self.standalone.differences.insert(place, row);
    }

    fn table(&self) -> String {
        let refused = |by: &dyn Fn(Speaker) -> bool| {
            self.rows.values().filter(|row| row.speaks_away.is_some_and(by)).count()
        };
        let all = refused(&|_| true);
        let mut text = format!(
            "Of {} steps, {} end in a denial. With the guard away, {all} of them are refused all the \
             same, {} by Kubernetes itself, and {} pass, for the reasons below. No policy refuses what \
             the webhook allows, and {} denials were compared with those of the webhook alone: they \
             have the same words, except for the way out where the webhook sees that a manifest \
             states no strategy.\n\n",
            self.judged,
            self.rows.len(),
            refused(&|speaker| speaker == Speaker::Kubernetes),
            self.rows.len() - all,
            self.alike,
        );
        text +=
            "| case | | rules | guard there: who refuses | guard away |\n|---|---|---|---|---|\n";
        for row in self.rows.values() {
            text += &row.text;
            text.push('\n');
        }
        text
    }
}

/// Writes the tables into the page if `TABLE` is `write`: new cases change them. Otherwise checks
/// that the page has each refusal of the standalone policy alone.
fn write(table: &str, standalone: &str, found: &Found) -> Result<(), Failed> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path)?;
    if std::env::var_os("TABLE").is_none_or(|value| value != "write") {
        return match found.standalone.excess().find(|row| !page.contains(*row)) {
            Some(row) => Err(format!("{PAGE} has no row \"{row}\"").into()),
            None => Ok(()),
        };
    }
    let page = between(&page, [BEGIN, END], table)?;
    let page = between(&page, [STANDALONE_BEGIN, STANDALONE_END], standalone)?;
    Ok(std::fs::write(&path, page)?)
}

/// The page with another text between the marks.
pub(crate) fn between(page: &str, [begin, end]: [&str; 2], text: &str) -> Result<String, Failed> {
    let (before, rest) = page.split_once(begin).ok_or("the page has no place for the table")?;
    let (_, after) = rest.split_once(end).ok_or("the page has no end of the table")?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}
