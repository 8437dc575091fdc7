//! The fourth stage: judges objects in their context.

use std::cell::OnceCell;

use jiff::Timestamp;
use serde_json::Value;

use super::scope::{APPLIED_TOGETHER, Context};
use super::unused_suppressions;
use engine::model::object::Object;
use engine::policy::Action;
use engine::rules::{Outcome, codes};
use engine::snapshot::{Overlay, View};
use engine::verdict::{Document, EffectivePolicy, Finding, Mode, Review, Verdict, evaluate};
use manifest::field_index::FieldIndex;
use manifest::helm_hook::HelmHook;
use manifest::locate::Spot;
use manifest::objects::Item;

/// The document of an object as its `FieldIndex` keeps it, parsed on first use.
pub(super) struct FileDocument<'m> {
    outline: &'m FieldIndex,
    value: OnceCell<Value>,
    now: Timestamp,
}

impl<'m> FileDocument<'m> {
    pub(super) fn of(known: &'m Item, now: Timestamp) -> Self {
        Self {
            outline: &known.outline,
            value: OnceCell::new(),
            now,
        }
    }

    pub(super) fn value(&self) -> &Value {
        self.value.get_or_init(|| self.outline.document())
    }

    /// The position of the field in the file.
    fn spot(&self, field: &str) -> Spot {
        self.outline.locate(self.value(), field)
    }
}

impl Document for FileDocument<'_> {
    fn object(&self) -> Option<&Value> {
        Some(self.value())
    }

    fn changes_template(&self) -> bool {
        true
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(self.now)
    }
}

/// Judges the object with the number `number` in its context.
pub(super) fn verdict(
    context: &Context<'_>,
    number: usize,
    effective: &EffectivePolicy,
    document: &FileDocument<'_>,
    mode: Mode,
) -> Verdict {
    let parsed = context.parsed;
    let known = &parsed.reading.objects[number];
    let review = Review {
        object: &known.object,
        old: None,
        reference: &known.reference,
        scaled: None,
        document,
        mode,
    };
    let nearer = [&context.cluster];
    let overlay = Overlay {
        partial: !parsed.facts_have_classes,
        files: true,
        nearer: &nearer,
        made_classes: &parsed.made_classes,
        default_in_doubt: parsed.is_default_in_doubt,
        batch: Some((&context.order, number)),
        ..Overlay::NOTHING
    };
    evaluate(&review, View::new(&parsed.facts, &overlay), effective)
}

/// The findings and notices for one object, with their positions.
pub(super) struct Judged {
    pub(super) number: usize,
    /// Whether the findings depend on something that was not rendered.
    pub(super) is_unrendered: bool,
    pub(super) findings: Vec<(Finding, Spot)>,
    pub(super) notices: Vec<(String, Spot)>,
}

/// Judges the object with the number `number` in its context; `None` if there are no findings or
/// notices, as for most objects.
pub(super) fn judge(
    context: &Context<'_>,
    number: usize,
    effective: &EffectivePolicy,
) -> Option<Judged> {
    let parsed = context.parsed;
    let known = &parsed.reading.objects[number];
    let document = FileDocument::of(known, parsed.now);
    let verdict = verdict(context, number, effective, &document, Mode::Propose);
    let (findings, notices) = (verdict.findings, verdict.notices);
    let is_unrendered = context.doubt(known).is_some();
    let unused = unused_suppressions::on_object(parsed, known, &findings, is_unrendered);
    if findings.is_empty() && notices.is_empty() && known.notes.is_empty() && unused.is_empty() {
        return None;
    }
    let annotations = document.spot("metadata.annotations");
    let of_annotations = notices.into_iter().chain(unused);
    let of_annotations = of_annotations.map(|text| (text, annotations));
    let notes = known.notes.iter();
    let notes = notes.map(|note| (note.text.clone(), note.spot));
    let mut judged = Judged {
        number,
        is_unrendered,
        findings: Vec::new(),
        notices: of_annotations.chain(notes).collect(),
    };
    if !findings.is_empty() {
        let start = document.spot("");
        let elsewhere = elsewhere(context, known).into_iter();
        judged.notices.extend(elsewhere.map(|text| (text, start)));
    }
    for mut finding in findings {
        let qualified = qualify(&mut finding, context, number, &document);
        judged.notices.extend(qualified);
        let spot = document.spot(&finding.field_path);
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
fn qualify(
    finding: &mut Finding,
    context: &Context<'_>,
    number: usize,
    document: &FileDocument<'_>,
) -> Vec<(String, Spot)> {
    let parsed = context.parsed;
    let known = &parsed.reading.objects[number];
    let namespace = &known.object.metadata().namespace;
    let mut ambiguous = context.ambiguous_of(number);
    if finding.rule == codes::UNRESOLVED_CLAIM
        && let Some(note) = ambiguous.find(|note| finding.volumes.contains(&note.claim))
    {
        finding.message = format!("{}: {}", finding.object, note.text);
        finding.brief = format!("claim \"{}\" is defined more than once", note.claim);
        finding.step = format!("{APPLIED_TOGETHER}.");
    }
    let mut notices = Vec::new();
    for assumed in context.assumed_of(number, namespace) {
        let is_about_it = !assumed.is_about_users || finding.rule == codes::WORKLOADS_SHARE_VOLUME;
        if is_about_it && finding.volumes.contains(&assumed.claim) {
            if finding.rule == codes::UNRESOLVED_CLAIM {
                // An unknown outcome is not likely either, so only its action is lowered.
                finding.action = finding.action.max(Action::Warn);
            } else {
                finding.assume("likely");
            }
            notices.push((assumed.text.clone(), document.spot("")));
        }
    }
    let release = parsed.text(known).release();
    if let Some(unknown) = release.and_then(|it| it.unknown.as_deref()) {
        finding.assume("unless the release changes it");
        finding.message += &format!(" {unknown} may change this.");
    }
    if let Some(doubt) = context.doubt(known) {
        finding.assume("unless rendering changes it");
        finding.message += &format!(" {doubt}, which was not rendered, may change this.");
    }
    notices
}

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
