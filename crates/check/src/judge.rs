//! The fourth stage: judges objects in their context.

use std::cell::OnceCell;

use jiff::Timestamp;
use serde_json::Value;

use super::ids::ObjectId;
use super::scope::{APPLIED_TOGETHER, Context, NoteKind, Scopes};
use super::unused_suppressions;
use engine::model::object::Object;
use engine::model::words::listed;
use engine::model::workload::Workload;
use engine::policy::Action;
use engine::rules::{Certainty, codes};
use engine::snapshot::{Overlay, View};
use engine::verdict::{Document, EffectivePolicy, Finding, Mode, Review, Verdict, evaluate};
use manifest::helm_hook::HelmHook;
use manifest::locate::Spot;
use manifest::objects::Item;

/// An object to judge, and its context.
pub(super) struct Subject<'c> {
    pub(super) context: Context<'c>,
    document: OnceCell<Value>,
}

impl Document for Subject<'_> {
    fn object(&self) -> Option<&Value> {
        Some(self.document())
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(self.context.parsed.now)
    }
}

/// The findings and notices for one object.
pub(super) struct Judged<'c> {
    pub(super) context: Context<'c>,
    /// Each finding with the field on which it is marked, and the place of that field.
    pub(super) findings: Vec<(Finding, String, Spot)>,
    pub(super) notices: Vec<(String, Spot)>,
}

impl<'c> Subject<'c> {
    /// The object in its context.
    pub(super) fn of(scopes: &'c Scopes<'c>, id: ObjectId) -> Self {
        Self { context: Context::of(scopes, id), document: OnceCell::new() }
    }

    /// The parts of the document that are kept, parsed on first use.
    pub(super) fn document(&self) -> &Value {
        self.document.get_or_init(|| self.context.known.outline.document())
    }

    /// The position of the field in the file.
    fn spot(&self, field: &str) -> Spot {
        self.context.known.outline.locate(self.document(), field)
    }

    /// The field on which the finding is marked: the type of a strategy, where one is written.
    fn written_field(&self, field: &str) -> String {
        let is_typed = |strategy| self.document()["spec"][strategy].get("type").is_some();
        match field.strip_prefix("spec.") {
            Some(strategy @ ("strategy" | "updateStrategy")) if is_typed(strategy) => {
                format!("{field}.type")
            }
            _ => field.to_owned(),
        }
    }

    /// The verdict on the object. Several definitions of one name that lead to the same verdict are
    /// one.
    pub(super) fn verdict(&mut self, effective: &EffectivePolicy, mode: Mode) -> Verdict {
        let verdict = self.verdict_in(&self.context, effective, mode);
        let mut alternatives = self.context.alternatives().into_iter().map(|context| {
            let alternative = self.verdict_in(&context, effective, mode);
            (context, alternative)
        });
        match alternatives.next() {
            Some((context, first))
                if alternatives.all(|(_, other)| decisive(&first) == decisive(&other)) =>
            {
                drop(alternatives);
                self.context = context;
                first
            }
            _ => verdict,
        }
    }

    fn verdict_in(
        &self,
        context: &Context<'_>,
        effective: &EffectivePolicy,
        mode: Mode,
    ) -> Verdict {
        let review = Review {
            object: &self.context.known.object,
            old: None,
            reference: &self.context.known.reference,
            scaled: None,
            document: self,
            mode,
        };
        let facts = &context.parsed.facts;
        evaluate(&review, View::new(facts, &overlay(context)), effective)
    }

    /// Whether the verdict rests on facts about a claim that are only assumed, the object is
    /// incomplete, or a kustomization that was not rendered may change it.
    pub(super) fn rests_on_an_assumption(&self) -> bool {
        if self.context.known.incomplete().is_some() || self.context.doubt().is_some() {
            return true;
        }
        let Object::Workload(workload) = &self.context.known.object else {
            return false;
        };
        let mut notes = workload.template.claims().flat_map(|claim| self.context.notes(claim));
        notes.any(|note| note.kind == NoteKind::Assumed)
    }

    /// Sentences about what was found in other scopes if there are no findings with it, and would
    /// be some without it.
    fn silence_rests_on(&self, verdict: &Verdict, effective: &EffectivePolicy) -> Vec<String> {
        if !verdict.findings.is_empty() {
            return Vec::new();
        }
        self.context
            .without_other_scopes()
            .filter(|(context, _)| {
                !self.verdict_in(context, effective, Mode::Propose).findings.is_empty()
            })
            .map_or_else(Vec::new, |(_, notes)| notes)
    }

    /// Judges the object; `None` if there are no findings or notices, as for most objects.
    pub(super) fn judge(mut self, effective: &EffectivePolicy) -> Option<Judged<'c>> {
        let verdict = self.verdict(effective, Mode::Propose);
        let (context, known) = (&self.context, self.context.known);
        let unused = unused_suppressions::on_object(context, &verdict.findings);
        let assumed = self.silence_rests_on(&verdict, effective);
        let is_silent = verdict.findings.is_empty()
            && verdict.notices.is_empty()
            && unused.is_empty()
            && assumed.is_empty();
        if is_silent && known.notes.is_empty() && known.incomplete().is_none() {
            return None;
        }
        let annotations = self.spot("metadata.annotations");
        let of_annotations =
            verdict.notices.into_iter().chain(unused).map(|text| (text, annotations));
        let notes = known.notes.iter().map(|note| (note.text.clone(), note.spot));
        let start = self.spot("");
        let assumed = assumed.into_iter().map(|text| (text, start));
        let mut notices: Vec<_> = of_annotations.chain(notes).chain(assumed).collect();
        if !verdict.findings.is_empty() {
            let elsewhere = elsewhere(context).into_iter();
            notices.extend(elsewhere.map(|text| (text, start)));
        }
        let mut findings = Vec::new();
        for mut finding in verdict.findings {
            notices.extend(self.qualify(&mut finding));
            let field = self.written_field(&finding.field_path);
            let spot = self.spot(&field);
            match as_notice(known, &finding) {
                Some(text) => notices.push((text, spot)),
                None => findings.push((finding, field, spot)),
            }
        }
        let mut unique = Vec::with_capacity(notices.len());
        for notice in notices {
            if !unique.contains(&notice) {
                unique.push(notice);
            }
        }
        Some(Judged { context: self.context, findings, notices: unique })
    }

    /// Adds to the finding, and to notices, the ambiguous or assumed facts that it depends on.
    fn qualify(&self, finding: &mut Finding) -> Vec<(String, Spot)> {
        let (context, known) = (&self.context, self.context.known);
        let mut notices = Vec::new();
        for claim in finding.volumes.clone() {
            for note in context.notes(&claim) {
                match (note.kind, finding.rule) {
                    (NoteKind::Ambiguous, codes::UNRESOLVED_CLAIM) => {
                        finding.message = format!("{}: {}", finding.object, note.text);
                        finding.brief = format!("claim \"{claim}\" is defined more than once");
                        finding.step = format!("{APPLIED_TOGETHER}.");
                        continue;
                    }
                    // An unknown outcome is not likely either, so only its action is lowered.
                    (NoteKind::Assumed, codes::UNRESOLVED_CLAIM) => {
                        finding.action = finding.action.max(Action::Warn);
                    }
                    (NoteKind::Assumed, _)
                    | (NoteKind::AssumedUsers, codes::WORKLOADS_SHARE_VOLUME) => {
                        finding.assume("likely");
                    }
                    (NoteKind::Ambiguous | NoteKind::AssumedUsers, _) => continue,
                }
                notices.push((note.text, self.spot("")));
            }
        }
        let release = context.parsed.text(known).release();
        if let Some(unknown) = release.and_then(|release| release.unknown.as_deref()) {
            finding.assume("unless the release changes it");
            finding.message += &format!(" {unknown} may change this.");
        }
        if let Some(incomplete) = known.incomplete() {
            let fields = listed(&incomplete.fields, "and");
            // A guess has a condition already.
            if finding.certainty != Certainty::Assumed {
                finding.assume("unless the missing part changes it");
            }
            finding.message += &format!(" The manifest lacks {fields}, so this is an assumption.");
        } else if self.depends_on_incomplete(finding) {
            finding.assume("likely");
        }
        if let Some(doubt) = context.doubt() {
            finding.assume(&format!("unless {} changes it", doubt.replacen("The ", "the ", 1)));
            finding.message += &format!(" {doubt}, which was not rendered, may change this.");
        }
        notices
    }

    /// Whether the finding depends on an incomplete workload that uses the same volume.
    fn depends_on_incomplete(&self, finding: &Finding) -> bool {
        let uses = |workload: &Workload| {
            workload.template.claims().any(|claim| finding.volumes.contains(claim))
        };
        ABOUT_OTHERS.contains(&finding.rule) && self.context.gave_incomplete(uses)
    }
}

/// The facts that the files around an object add to those of the cluster.
pub(super) fn overlay<'c>(context: &'c Context<'_>) -> Overlay<'c> {
    let parsed = context.parsed;
    Overlay {
        partial: !parsed.facts_have_classes,
        files: true,
        nearer: Some(context),
        made_classes: &parsed.made_classes,
        default_in_doubt: context.is_default_in_doubt(),
        batch: Some((context, context.id.0)),
        ..Overlay::NOTHING
    }
}

/// The rules about an object and a workload besides it.
const ABOUT_OTHERS: [&str; 2] = [codes::WORKLOADS_SHARE_VOLUME, codes::AUTOSCALER_EXCEEDS_VOLUME];

/// The parts of a verdict besides its words.
fn decisive(verdict: &Verdict) -> impl PartialEq {
    let of_findings: Vec<_> = verdict
        .findings
        .iter()
        .map(|finding| {
            let Finding { rule, outcome, certainty, action, field_path, volumes, .. } = finding;
            (rule, outcome, certainty, action, field_path, volumes)
        })
        .collect();
    (of_findings, &verdict.patch)
}

/// The notice that replaces a finding if nobody needs to act on it.
fn as_notice(known: &Item, finding: &Finding) -> Option<String> {
    if finding.action == Action::Ignore {
        return None;
    }
    if known.hook == Some(HelmHook::Test) {
        let statement = finding.statement();
        return Some(format!(
            "This is a Helm test, which exists only while somebody runs it: {statement}"
        ));
    }
    let Object::Workload(workload) = &known.object else {
        return None;
    };
    finding.advised_delay(workload)
}

/// The notices about claims of a workload that, in the facts, exist only in one other namespace.
fn elsewhere(context: &Context<'_>) -> Vec<String> {
    let Object::Workload(workload) = &context.known.object else {
        return Vec::new();
    };
    let facts = context.parsed.facts.view();
    let own = &workload.metadata.namespace;
    workload
        .template
        .claims()
        .filter(|claim| context.claim(claim).is_none())
        .filter(|claim| facts.claim(own, claim).found().is_none())
        .filter_map(|claim| match facts.namespaces_with_claim(claim)[..] {
            [only] => Some(format!(
                "There is no claim \"{claim}\" in namespace {own}, but the facts have one in {only}; if that is the one, pass --namespace {only}."
            )),
            _ => None,
        })
        .collect()
}
