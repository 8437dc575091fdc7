//! `diagnose`: explains why pods wait for volumes, and prints the way out.
//!
//! ```text
//! cluster ─▶ one moment of it ─▶ cases ─▶ those of the name ─▶ report
//! ```

mod open;

use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::cluster::{ClusterArgs, Connection, ScopeArgs, Subject};
use super::error::CommandError;
use super::format;
use super::output::width;
use super::target::{TargetError, held_up_by};
use ::report::diagnosis::{self as report, Diagnosis, Format, Ways};
use doctor::diagnosis::{CaseEntry, Clock, DiagnosisInput, NodeEntry, cases, explain, node, span};
use engine::model::live_pod::Pod;
use engine::model::observed::Observed;
use manifest::error::MAX_BYTES;
use source::policy_file;

/// The time between two looks at a cluster that is watched.
const AGAIN: Duration = Duration::from_secs(5);

/// The options of `diagnose`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiagnoseOptions {
    /// Name, as web, deploy/web, pvc/data, shop/web or node/n1 [default: everything that waits]
    #[arg(value_name = "POD|WORKLOAD|CLAIM|NODE")]
    pub name: Option<String>,

    /// Which cluster, and as whom.
    #[command(flatten)]
    pub cluster: ClusterArgs,

    /// Which part of it.
    #[command(flatten)]
    pub scope: ScopeArgs,

    /// Output format
    #[arg(long, short = 'o', visible_alias = "output", value_parser = format::values(&Format::ALL, Format::documented), default_value = "text")]
    pub format: Format,

    /// Print all that is known and all ways out, not only the safest
    #[arg(long)]
    pub all_ways: bool,

    /// Look again every few seconds until nothing waits, or nothing is left on the node
    #[arg(long)]
    pub watch: bool,

    /// Explain a line or more of an Event or a ticket, without a cluster (-: standard input)
    #[arg(long, value_name = "LINE", conflicts_with_all = ["name", "watch"])]
    pub explain: Option<String>,
}

/// The exit code if too little could be read to say that nothing waits.
const BLIND: u8 = 2;

/// The largest number of notes about pods that do not run for another reason; further ones are
/// counted.
const HELD_UP: usize = 5;

/// Runs the command, and returns the exit code of the program.
pub(super) fn run(options: &DiagnoseOptions) -> Result<u8, CommandError> {
    if let Some(line) = &options.explain {
        return explain_text(line, options.format);
    }
    let subject = options.scope.subject(options.name.as_deref())?;
    let connection = options.cluster.connect()?;
    let kubectl = options.cluster.kubectl();
    let mut shown = None;
    let mut has_seen = false;
    loop {
        let (diagnosis, code) = look(&subject, &kubectl, &connection)?;
        // Durations grow while nothing happens, so the comparison leaves them out.
        let essence = essence(&diagnosis);
        if shown.as_ref() != Some(&essence) {
            let mut out = io::stdout().lock();
            if shown.is_some() {
                writeln!(out)?;
            }
            let ways = if options.all_ways { Ways::All } else { Ways::Safest };
            report::write(&diagnosis, options.format, ways, width(out.is_terminal()), &mut out)?;
            out.flush()?;
            shown = Some(essence);
        }
        has_seen |= code != BLIND;
        // If the API server is away for a while, as during its upgrade, the wait is not over.
        let is_over = is_empty(&diagnosis) && !(has_seen && code == BLIND);
        if !options.watch || is_over {
            return Ok(code);
        }
        std::thread::sleep(AGAIN);
    }
}

/// Prints what a text means, or standard input if the text is `-`.
fn explain_text(text: &str, format: Format) -> Result<u8, CommandError> {
    let explained = if text == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MAX_BYTES).read_to_end(&mut bytes).map_err(CommandError::Pasted)?;
        explain(&String::from_utf8_lossy(&bytes))
    } else {
        explain(text)
    };
    if explained.known.is_empty() {
        return Err(CommandError::Unexplained);
    }
    let mut out = io::stdout().lock();
    report::explanation::write(&explained, format, width(out.is_terminal()), &mut out)?;
    Ok(0)
}

fn look(
    subject: &Subject,
    kubectl: &str,
    connection: &Connection,
) -> Result<(Diagnosis, u8), CommandError> {
    let effective = policy_file::effective(None)?;
    let one_shot = connection.one_shot(subject)?;
    let observed = &one_shot.observed;
    let facts = DiagnosisInput {
        objects: effective.facts(one_shot.cluster.view()),
        observed,
        now: one_shot.now.unwrap_or_else(Timestamp::now),
        kubectl,
    };
    let mut found = cases(facts, |wanted| {
        // Without the documents, the commands that need them are left out.
        connection.documents(wanted).unwrap_or_default()
    });
    let mut diagnosis = Diagnosis {
        open: open::questions(observed),
        unread: observed.unread.iter().map(|unread| unread.resource.to_string()).collect(),
        ..Diagnosis::default()
    };
    diagnosis.notes.extend(subject.remarks(facts));
    match &subject.target {
        Some(target) if target.node().is_some() => {
            found.clear();
            diagnosis.node = node(facts, &target.name);
            if diagnosis.node.is_none() && observed.has_read("nodes") {
                return Err(TargetError::Nothing(target.name.clone()).into());
            }
            if let Some(namespace) = &subject.namespace {
                diagnosis.notes.push(format!(
                    "Only pods of namespace {namespace} were read: others may use volumes there."
                ));
            }
        }
        Some(target) => {
            found.retain(|case| target.is_about(case));
            if found.is_empty() && observed.has_read("pods") {
                diagnosis.notes.push(target.nothing(facts)?);
            }
        }
        None => diagnosis.notes.extend(held_up(observed, &found)),
    }
    diagnosis.cases = found;
    diagnosis.notes.extend(skew(observed, facts.now));
    let code = match (is_empty(&diagnosis), open::is_blind(observed)) {
        (false, _) => 1,
        (true, true) => BLIND,
        (true, false) => 0,
    };
    Ok((diagnosis, code))
}

/// Whether nothing waits, and nothing is left on the node that was asked about.
fn is_empty(diagnosis: &Diagnosis) -> bool {
    let has_volumes = |node: &NodeEntry| !node.volumes.is_empty();
    diagnosis.cases.is_empty() && !diagnosis.node.as_ref().is_some_and(has_volumes)
}

/// Notes about pods that have their volumes but do not run.
fn held_up(observed: &Observed, found: &[CaseEntry]) -> Vec<String> {
    let is_in = |pod: &Pod, case: &CaseEntry| {
        case.volume.namespace == pod.meta.namespace
            && case.waiting.iter().any(|waiting| waiting.pod == pod.meta.name)
    };
    let mut notes: Vec<String> = observed
        .pods
        .iter()
        .filter(|pod| !pod.is_ending())
        .filter(|pod| pod.phase == "Pending" && !pod.claims.is_empty())
        .filter(|pod| !found.iter().any(|case| is_in(pod, case)))
        .filter_map(|pod| Some(held_up_by(pod, pod.held_up.as_ref()?)))
        .collect();
    if notes.len() > HELD_UP {
        let more = notes.len() - HELD_UP;
        notes.truncate(HELD_UP);
        notes.push(format!("So do {more} more pods."));
    }
    notes
}

/// A note about how far the clocks of the nodes are off, if that matters.
fn skew(observed: &Observed, now: Timestamp) -> Option<String> {
    let ahead = Clock::of(observed, now).skew?;
    let (direction, by) =
        if ahead > 0 { ("ahead of", span(ahead)) } else { ("behind", span(-ahead)) };
    Some(format!(
        "The clocks of the nodes are {by} {direction} the API server's. Leases are judged by the youngest of them."
    ))
}

/// The cases without their durations: which pods wait for which claim, and why.
fn essence(diagnosis: &Diagnosis) -> Vec<String> {
    let cases = diagnosis.cases.iter().map(|case| {
        let pods: Vec<&str> = case.waiting.iter().map(|waiting| waiting.pod.as_str()).collect();
        format!("{} {} {pods:?}", case.cause, case.volume.claim)
    });
    let volumes = diagnosis.node.iter().flat_map(|node| node.volumes.iter().cloned());
    cases.chain(volumes).chain(diagnosis.open.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn options(arguments: &[&str]) -> Result<DiagnoseOptions, clap::Error> {
        let all = ["multi-attach-guard", "diagnose"].iter().chain(arguments);
        match Cli::try_parse_from(all)?.command {
            Command::Diagnose(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_mean_what_they_mean_to_kubectl() {
        for arguments in [&["-o", "json"][..], &["--output", "json"], &["--format", "json"]] {
            assert_eq!(options(arguments).unwrap().format, Format::Json);
        }
        let flags = ["--kubeconfig=/k", "--context=prod", "--as=on-call", "--as-group=sre"];
        assert_eq!(
            options(&flags).unwrap().cluster.kubectl(),
            "kubectl --kubeconfig=/k --context=prod --as=on-call --as-group=sre"
        );
        assert!(options(&["-A", "web"]).unwrap().scope.all_namespaces);
        assert!(options(&["-A", "-n", "shop"]).is_err());
        assert!(options(&["--as-group", "sre"]).is_err());
        assert!(options(&["--explain", "x", "web"]).is_err());
    }

    #[test]
    fn pods_that_have_their_volumes_are_mentioned() {
        let pod = |name: &str, reason: &str| {
            let pod = serde_json::json!({
                "metadata": {"name": name, "namespace": "shop"},
                "spec": {"nodeName": "n1", "volumes": [
                    {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
                "status": {"phase": "Pending", "containerStatuses": [
                    {"state": {"waiting": {"reason": reason}}}]},
            });
            serde_json::from_value(pod).unwrap()
        };
        let observed = |pods| Observed { pods, ..Observed::default() };
        let two = vec![pod("a", "ContainerCreating"), pod("b", "ImagePullBackOff")];
        assert_eq!(
            held_up(&observed(two), &[]),
            ["Pod shop/b has its volumes, and does not run for another reason: ImagePullBackOff."]
        );
        let eight = (0..8).map(|number| pod(&number.to_string(), "ErrImagePull"));
        let notes = held_up(&observed(eight.collect()), &[]);
        assert_eq!(notes.last().unwrap(), "So do 3 more pods.");
    }
}
