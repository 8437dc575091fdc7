//! Compares findings with those of an earlier report.

use std::collections::HashMap;

use serde::Deserialize;

use super::{Compared, Located, Report, Severity};
use engine::policy::Action;

/// The report of an earlier `check` or `audit`.
#[derive(Deserialize)]
pub struct Earlier {
    findings: Vec<EarlierFinding>,
    #[serde(default)]
    suppressed: Vec<EarlierFinding>,
    #[serde(default)]
    stuck: Vec<EarlierCase>,
}

#[derive(Deserialize)]
struct EarlierFinding {
    rule: String,
    action: Action,
    object: EarlierObject,
    /// Reports of 0.1.0 do not have this field.
    volumes: Option<Vec<String>>,
    file: Option<String>,
}

#[derive(Deserialize)]
struct EarlierObject {
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct EarlierCase {
    cause: String,
    volume: EarlierVolume,
}

#[derive(Deserialize)]
struct EarlierVolume {
    namespace: String,
    claim: String,
}

/// The key by which the findings of two reports are matched, besides their volumes. It has neither
/// the file nor the line, because files are renamed and lines move.
fn key(rule: &str, kind: &str, namespace: &str, name: &str) -> String {
    [rule, kind, namespace, name].join("\n")
}

impl EarlierFinding {
    /// Whether `located` is not new: it concerns the same volumes and is not more severe.
    fn covers(&self, located: &Located) -> bool {
        let finding = &located.finding;
        let same_volumes = self.volumes.as_ref().is_none_or(|earlier| {
            earlier.len() == finding.volumes.len()
                && earlier.iter().all(|name| finding.volumes.iter().any(|volume| volume == name))
        });
        let is_error = |action| Severity::of(action) == Some(Severity::Error);
        same_volumes && (is_error(self.action) || !is_error(finding.action))
    }
}

impl Earlier {
    /// Parses the output of `--format json`.
    ///
    /// # Errors
    /// The text is not such a report.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// Marks each finding as new or not, counts only new ones, and adds the comparison to the
    /// summary.
    pub fn compare(&self, report: &mut Report) {
        let known = Matches::of(&self.findings);
        let silent = Matches::of(self.suppressed.iter().chain(&self.findings));
        let (reported, mut suppressed): (Vec<_>, Vec<_>) = report
            .findings
            .iter_mut()
            .partition(|located| located.finding.action != Action::Ignore);
        suppressed.retain(|located| located.finding.suppressed.is_some());
        let mut still = known.mark(reported);
        silent.mark(suppressed);
        for stuck in &mut report.stuck {
            let volume = &stuck.case.volume;
            let is_known = self.stuck.iter().any(|earlier| {
                earlier.cause == stuck.case.cause
                    && earlier.volume.namespace == volume.namespace
                    && earlier.volume.claim == volume.claim
            });
            stuck.is_new = Some(!is_known);
            still += usize::from(is_known);
        }
        let earlier = self.findings.len() + self.stuck.len();
        report.summary.compared =
            Some(Compared { earlier, still, gone: earlier.saturating_sub(still) });
        report.count();
    }
}

/// Earlier findings that no current finding has been matched with. Each is matched only once: if
/// two overlays had the same finding, a third one is new.
struct Matches<'e>(HashMap<String, Vec<&'e EarlierFinding>>);

impl<'e> Matches<'e> {
    fn of(findings: impl IntoIterator<Item = &'e EarlierFinding>) -> Self {
        let mut by_key: HashMap<_, Vec<_>> = HashMap::new();
        for finding in findings {
            let object = &finding.object;
            let key = key(&finding.rule, &object.kind, &object.namespace, &object.name);
            by_key.entry(key).or_default().push(finding);
        }
        Self(by_key)
    }

    /// Marks each finding as new or not, and returns the number of those that are not new. Findings
    /// in the same file are matched first.
    fn mark(mut self, mut findings: Vec<&mut Located>) -> usize {
        let mut matched = 0;
        for same_file in [true, false] {
            for located in findings.iter_mut().filter(|located| located.is_new != Some(false)) {
                let known = self.take(located, same_file);
                matched += usize::from(known);
                located.is_new = Some(!known);
            }
        }
        matched
    }

    fn take(&mut self, located: &Located, same_file: bool) -> bool {
        let finding = &located.finding;
        let object = &finding.object;
        let key = key(finding.rule, &object.kind, located.namespace(), &object.name);
        let Some(known) = self.0.get_mut(&key) else {
            return false;
        };
        let matched = known.iter().position(|earlier| {
            earlier.covers(located) && (!same_file || earlier.file.as_deref() == located.file())
        });
        matched.map(|at| known.swap_remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Line, Place};
    use engine::model::object::ObjectKind;
    use engine::model::workload::WorkloadKind;
    use engine::policy::{Suppressed, SuppressedBy};
    use engine::rules::{Certainty, Outcome, codes};
    use engine::verdict::Finding;

    fn found(name: &str, file: &str, action: Action, volumes: &[&str]) -> Located {
        let object = ObjectKind::Workload(WorkloadKind::Deployment).reference("shop", name);
        let finding = Finding {
            rule: codes::ROLLING_UPDATE_OVERLAP,
            outcome: Outcome::Deadlock,
            certainty: Certainty::Verified,
            action,
            object,
            field_path: String::new(),
            volumes: volumes.iter().map(|volume| (*volume).into()).collect(),
            message: String::new(),
            brief: String::new(),
            step: String::new(),
            denial: String::new(),
            remedies: Vec::new(),
            suppressed: (action == Action::Ignore)
                .then(|| Suppressed { by: SuppressedBy::Object, reason: "agreed".to_owned() }),
            lowered: None,
        };
        let place = Place {
            file: file.to_owned(),
            path: None,
            line: Line { number: 1, column: 1, end_column: 2, text: String::new() },
            template: None,
        };
        Located::new(finding, Some(place))
    }

    fn earlier() -> Earlier {
        let finding = |name: &str, file: &str, action: &str, volumes: &[&str]| {
            json!({"rule": "rolling-update-overlap", "action": action, "file": file, "volumes": volumes,
                "object": {"kind": "Deployment", "namespace": "shop", "name": name}})
        };
        let mut old = finding("old", "o.yaml", "deny", &[]);
        old.as_object_mut().unwrap().remove("volumes");
        serde_json::from_value(json!({"findings": [
            finding("api", "a.yaml", "deny", &["data"]),
            finding("api", "b.yaml", "deny", &["data"]),
            finding("web", "w.yaml", "warn", &["data"]),
            finding("db", "d.yaml", "deny", &["data"]),
            finding("gone", "g.yaml", "deny", &["data"]),
            old,
        ], "suppressed": [finding("quiet", "q.yaml", "ignore", &["data"])], "summary": {}}))
        .unwrap()
    }

    #[test]
    fn only_what_is_there_no_better_than_before_is_new() {
        let cases = [
            ("the same, moved", found("api", "moved.yaml", Action::Deny, &["data"]), false),
            ("the same", found("api", "b.yaml", Action::Deny, &["data"]), false),
            ("one more of them", found("api", "c.yaml", Action::Deny, &["data"]), true),
            ("graver than before", found("web", "w.yaml", Action::Deny, &["data"]), true),
            ("milder than before", found("db", "d.yaml", Action::Warn, &["data"]), false),
            ("another volume", found("db", "d.yaml", Action::Deny, &["logs"]), true),
            ("a report without volumes", found("old", "o.yaml", Action::Deny, &["data"]), false),
            ("suppressed before", found("quiet", "q.yaml", Action::Deny, &["data"]), true),
            ("still suppressed", found("quiet", "q.yaml", Action::Ignore, &["data"]), false),
        ];
        let found = cases.iter().map(|(_, located, _)| located.clone());
        let mut report = Report { findings: found.collect(), ..Report::default() };
        earlier().compare(&mut report);
        for ((name, _, expected), located) in cases.iter().zip(&report.findings) {
            assert_eq!(located.is_new, Some(*expected), "{name}");
        }
        let summary = &report.summary;
        assert_eq!((summary.deny, summary.warn, summary.suppressed), (4, 0, 1));
        let compared = Compared { earlier: 6, still: 4, gone: 2 };
        assert_eq!(summary.compared, Some(compared));
    }
}
