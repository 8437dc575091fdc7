//! Says once what would be said many times: of the overlays of one base, of the objects of
//! one kind.

use std::collections::HashMap;

use engine::model::Text;
use engine::model::object::ObjectRef;
use engine::policy::Action;
use report::{Excerpt, Located, Notice};

/// What makes the findings of several overlays one finding.
#[derive(PartialEq, Eq, Hash)]
struct Line {
    rule: &'static str,
    action: Action,
    kind: Text,
    name: Text,
    file: String,
    line: usize,
    message: String,
}

impl Line {
    fn of(located: &Located) -> Option<Self> {
        let finding = &located.finding;
        let place = located.place.as_ref().filter(|it| it.template.is_some())?;
        Some(Self {
            rule: finding.rule,
            action: finding.action,
            kind: finding.object.kind.clone(),
            name: finding.object.name.clone(),
            file: place.file.clone(),
            line: place.line,
            message: without_object(&finding.message, &finding.object),
        })
    }
}

/// The findings; equal ones about several volumes of one object are reported once, on the first.
pub(super) fn volumes(all: Vec<Located>) -> Vec<Located> {
    let mut first_of: HashMap<(&'static str, Action, String, String), usize> = HashMap::new();
    let mut folded: Vec<(Located, Vec<String>)> = Vec::with_capacity(all.len());
    for located in all {
        let finding = &located.finding;
        let key = match (&finding.volumes[..], &finding.remedies[..]) {
            ([volume], []) => {
                let volume = format!("claim \"{volume}\"");
                let message = finding.message.replacen(&volume, "claim", 1);
                let file = located.place.as_ref().map(|it| it.file.clone());
                let file = file.unwrap_or_default();
                Some((volume, (finding.rule, finding.action, file, message)))
            }
            _ => None,
        };
        let first = key.as_ref().and_then(|(_, key)| first_of.get(key)).copied();
        match (key, first.and_then(|first| folded.get_mut(first))) {
            (Some((volume, _)), Some((first, more))) => {
                // A file may be rendered twice.
                let is_new = |it: &Text| !first.finding.volumes.contains(it);
                if located.finding.volumes.iter().all(is_new) {
                    first.finding.volumes.extend(located.finding.volumes);
                    mark_as_well(&mut first.excerpts, located.excerpts);
                    more.push(volume);
                }
            }
            (key, _) => {
                first_of.extend(key.map(|(_, key)| (key, folded.len())));
                folded.push((located, Vec::new()));
            }
        }
    }
    let with_volumes = |(mut located, more): (Located, Vec<String>)| {
        if !more.is_empty() {
            let more = report::listed(&more);
            located.finding.message += &format!(" The same holds for {more}.");
        }
        located
    };
    folded.into_iter().map(with_volumes).collect()
}

/// So many lines that a finding speaks of are shown besides the one at fault.
const MOST_MARKS: usize = 3;

/// Marks what another finding speaks of in the lines of the first.
fn mark_as_well(excerpts: &mut [Excerpt], others: Vec<Excerpt>) {
    for other in others {
        let Some(own) = excerpts.iter_mut().find(|it| it.file == other.file) else {
            continue;
        };
        let new = other.marks.into_iter().filter(|mark| !mark.is_fault);
        let room = (MOST_MARKS + 1).saturating_sub(own.marks.len());
        own.marks.extend(new.take(room));
        own.marks.sort_by_key(|mark| (mark.line, mark.column));
    }
}

/// The findings; those on one line, which several charts or kustomizations take, are one.
pub(super) fn findings(all: Vec<Located>) -> Vec<Located> {
    let mut first_of: HashMap<Line, usize> = HashMap::new();
    let mut folded: Vec<Located> = Vec::with_capacity(all.len());
    for located in all {
        let line = Line::of(&located);
        let first = line.as_ref().and_then(|line| first_of.get(line)).copied();
        let place = located.place.as_ref();
        match first.and_then(|first| folded.get_mut(first)) {
            Some(first) if !is_among(first, place.and_then(|it| it.template.as_deref())) => {
                let object = located.finding.object;
                first
                    .also
                    .extend(located.place.map(|place| (object, place)));
            }
            _ => {
                first_of.extend(line.map(|line| (line, folded.len())));
                folded.push(located);
            }
        }
    }
    folded
}

/// Whether the finding is one of what is rendered from `template` already.
fn is_among(first: &Located, template: Option<&str>) -> bool {
    let own = first.place.iter();
    let mut places = own.chain(first.also.iter().map(|(_, place)| place));
    places.any(|place| place.template.as_deref() == template)
}

/// The notices; equal ones about several objects of one kind are reported once, on the first.
pub(super) fn notices(all: Vec<Notice>) -> Vec<Notice> {
    let mut first_of: HashMap<(Text, String), usize> = HashMap::new();
    let mut folded: Vec<(Notice, usize)> = Vec::with_capacity(all.len());
    for notice in all {
        let key = notice
            .object
            .as_ref()
            .map(|object| (object.kind.clone(), notice.text.clone()));
        let first = key.as_ref().and_then(|key| first_of.get(key)).copied();
        match first.and_then(|first| folded.get_mut(first)) {
            Some((_, more)) => *more += 1,
            None => {
                first_of.extend(key.map(|key| (key, folded.len())));
                folded.push((notice, 0));
            }
        }
    }
    folded.into_iter().map(with_count).collect()
}

fn with_count((mut notice, more): (Notice, usize)) -> Notice {
    let kind = notice.object.as_ref().map(|it| it.kind.as_str());
    if let (Some(kind), 1..) = (kind, more) {
        let objects = match more {
            1 => format!("one more {kind}"),
            more => format!("{more} more objects of kind {kind}"),
        };
        notice.text += &format!(" The same holds for {objects}.");
    }
    notice
}

/// The message without the name of its object and, in its commands, without the namespace.
fn without_object(message: &str, object: &ObjectRef) -> String {
    let message = message.strip_prefix(&object.to_string()).unwrap_or(message);
    let message = message.strip_prefix(": ").unwrap_or(message);
    match &object.namespace {
        Some(namespace) => message.replace(&format!("kubectl -n {namespace} "), "kubectl "),
        None => message.to_owned(),
    }
}
