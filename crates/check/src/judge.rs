//! The fourth stage: judges objects in their context.

use std::cell::OnceCell;

use jiff::Timestamp;
use serde_json::Value;

use super::ids::ObjectId;
use super::scope::{APPLIED_TOGETHER, Context};
use super::unused_suppressions;
use engine::model::object::Object;
use engine::model::words::listed;
use engine::model::workload::Workload;
use engine::policy::Action;
use engine::rules::{Certainty, Outcome, codes};
use engine::snapshot::{Overlay, View};
use engine::verdict::{Document, EffectivePolicy, Finding, Mode, Review, Verdict, evaluate};
use manifest::helm_hook::HelmHook;
use manifest::locate::Spot;
use manifest::objects::Item;

/// An object to judge, and its context.
pub(super) struct Subject<'c> {
    context: &'c Context<'c>,
    pub(super) id: ObjectId,
    known: &'c Item,
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

/// The findings and notices for one object, with their positions.
pub(super) struct Judged {
    pub(super) id: ObjectId,
    pub(super) findings: Vec<(Finding, Spot)>,
    pub(super) notices: Vec<(String, Spot)>,
}

impl<'c> Subject<'c> {
    /// The object in its context.
    pub(super) fn of(context: &'c Context<'c>, id: ObjectId) -> Self {
        Self { context, id, known: context.parsed.object(id), document: OnceCell::new() }
    }

    /// The parts of the document that are kept, parsed on first use.
    pub(super) fn document(&self) -> &Value {
        self.document.get_or_init(|| self.known.outline.document())
    }

    /// The position of the field in the file.
    fn spot(&self, field: &str) -> Spot {
        self.known.outline.locate(self.document(), field)
    }

    /// The verdict on the object.
    pub(super) fn verdict(&self, effective: &EffectivePolicy, mode: Mode) -> Verdict {
        let (context, parsed) = (self.context, self.context.parsed);
        let review = Review {
            object: &self.known.object,
            old: None,
            reference: &self.known.reference,
            scaled: None,
            document: self,
            mode,
        };
        let nearer = [&context.cluster];
        let overlay = Overlay {
            partial: !parsed.facts_have_classes,
            files: true,
            nearer: &nearer,
            made_classes: &parsed.made_classes,
            default_in_doubt: parsed.is_default_in_doubt,
            batch: Some((&context.order, self.id.0)),
            ..Overlay::NOTHING
        };
        evaluate(&review, View::new(&parsed.facts, &overlay), effective)
    }

    /// Whether facts about a claim that the object uses are only assumed, the object is incomplete,
    /// or a kustomization that was not rendered may change it.
    pub(super) fn rests_on_an_assumption(&self) -> bool {
        if self.known.incomplete().is_some() || self.context.doubt(self.known).is_some() {
            return true;
        }
        let Object::Workload(workload) = &self.known.object else {
            return false;
        };
        self.context.assumed_of(self.id).any(|note| {
            !note.is_about_users && workload.template.claims().any(|claim| *claim == note.claim)
        })
    }

    /// Judges the object; `None` if there are no findings or notices, as for most objects.
    pub(super) fn judge(&self, effective: &EffectivePolicy) -> Option<Judged> {
        let (context, known) = (self.context, self.known);
        let verdict = self.verdict(effective, Mode::Propose);
        let (findings, notices) = (verdict.findings, verdict.notices);
        let unused = unused_suppressions::on_object(context, known, &findings);
        let is_silent = findings.is_empty() && notices.is_empty() && unused.is_empty();
        if is_silent && known.notes.is_empty() && known.incomplete().is_none() {
            return None;
        }
        let annotations = self.spot("metadata.annotations");
        let of_annotations = notices.into_iter().chain(unused).map(|text| (text, annotations));
        let notes = known.notes.iter().map(|note| (note.text.clone(), note.spot));
        let mut judged = Judged {
            id: self.id,
            findings: Vec::new(),
            notices: of_annotations.chain(notes).collect(),
        };
        if !findings.is_empty() {
            let start = self.spot("");
            let elsewhere = elsewhere(context, known).into_iter();
            judged.notices.extend(elsewhere.map(|text| (text, start)));
        }
        for mut finding in findings {
            judged.notices.extend(self.qualify(&mut finding));
            let spot = self.spot(&finding.field_path);
            match as_notice(known, &finding) {
                Some(text) => judged.notices.push((text, spot)),
                None => judged.findings.push((finding, spot)),
            }
        }
        let mut seen = Vec::with_capacity(judged.notices.len());
        judged.notices.retain(|notice| {
            let is_new = !seen.contains(notice);
            seen.push(notice.clone());
            is_new
        });
        Some(judged)
    }

    /// Adds to the finding, and to notices, the ambiguous or assumed facts that it depends on.
    fn qualify(&self, finding: &mut Finding) -> Vec<(String, Spot)> {
        let (context, known) = (self.context, self.known);
        let mut ambiguous = context.ambiguous_of(self.id);
        if finding.rule == codes::UNRESOLVED_CLAIM
            && let Some(note) = ambiguous.find(|note| finding.volumes.contains(&note.claim))
        {
            finding.message = format!("{}: {}", finding.object, note.text);
            finding.brief = format!("claim \"{}\" is defined more than once", note.claim);
            finding.step = format!("{APPLIED_TOGETHER}.");
        }
        let mut notices = Vec::new();
        for assumed in context.assumed_of(self.id) {
            let is_about_it =
                !assumed.is_about_users || finding.rule == codes::WORKLOADS_SHARE_VOLUME;
            if is_about_it && finding.volumes.contains(&assumed.claim) {
                if finding.rule == codes::UNRESOLVED_CLAIM {
                    // An unknown outcome is not likely either, so only its action is lowered.
                    finding.action = finding.action.max(Action::Warn);
                } else {
                    finding.assume("likely");
                }
                notices.push((assumed.text.clone(), self.spot("")));
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
        if let Some(doubt) = context.doubt(known) {
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
        ABOUT_OTHERS.contains(&finding.rule) && self.context.incomplete().any(uses)
    }
}

/// The rules about an object and a workload besides it.
const ABOUT_OTHERS: [&str; 2] = [codes::WORKLOADS_SHARE_VOLUME, codes::AUTOSCALER_EXCEEDS_VOLUME];

/// The notice that replaces a finding if nobody needs to act on it.
fn as_notice(known: &Item, finding: &Finding) -> Option<String> {
    if finding.action == Action::Ignore {
        return None;
    }
    // A notice already names its object.
    let object = format!("{}: ", finding.object);
    let message = (finding.message.strip_prefix(&object)).unwrap_or(&finding.message);
    if known.hook == Some(HelmHook::Test) {
        return Some(format!(
            "This is a Helm test, which exists only while somebody runs it: {message}"
        ));
    }
    let Object::Workload(workload) = &known.object else {
        return None;
    };
    let room = workload.strategy.room(workload.replicas);
    let chosen = finding.outcome == Outcome::Delay
        && finding.action == Action::Warn
        && room.is_some_and(|room| room.surge == 0);
    chosen.then(|| format!("With maxSurge: 0, as chosen here: {message}"))
}

/// The notices about claims of a workload that, in the facts, exist only in one other namespace.
fn elsewhere(context: &Context<'_>, known: &Item) -> Vec<String> {
    let Object::Workload(workload) = &known.object else {
        return Vec::new();
    };
    let facts = context.parsed.facts.view();
    let own = &workload.metadata.namespace;
    workload
        .template
        .claims()
        .filter(|claim| context.cluster.view().claim(own, claim).found().is_none())
        .filter(|claim| facts.claim(own, claim).found().is_none())
        .filter_map(|claim| match facts.namespaces_with_claim(claim)[..] {
            [only] => Some(format!(
                "There is no claim \"{claim}\" in namespace {own}, but the facts have one in {only}; if that is the one, pass --namespace {only}."
            )),
            _ => None,
        })
        .collect()
}
