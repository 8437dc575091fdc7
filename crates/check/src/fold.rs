//! Merges findings and notices that would otherwise be repeated: for the overlays of one base, or
//! for the objects of one kind.

use std::collections::HashMap;
use std::hash::Hash;

use engine::model::Text;
use engine::model::object::ObjectRef;
use engine::model::words::listed;
use report::{Located, Notice};

/// Merges elements with the same key. Each one is passed to `merge` with the first one of its key;
/// `merge` returns it if the two must stay separate.
fn folded<T, K: Eq + Hash>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> Option<K>,
    merge: impl Fn(&mut T, T) -> Option<T>,
) -> Vec<T> {
    let mut first_of: HashMap<K, usize> = HashMap::new();
    let mut folded: Vec<T> = Vec::new();
    for one in all {
        let key = key(&one);
        let first = key.as_ref().and_then(|key| first_of.get(key)).copied();
        let apart = match first.and_then(|first| folded.get_mut(first)) {
            Some(first) => merge(first, one),
            None => Some(one),
        };
        if let Some(apart) = apart {
            first_of.extend(key.map(|key| (key, folded.len())));
            folded.push(apart);
        }
    }
    folded
}

/// Merges equal findings without remedies about several volumes of one object into the first one.
pub(super) fn volumes(all: Vec<Located>) -> Vec<Located> {
    let claim = |volume: &Text| format!("claim \"{volume}\"");
    // Each finding with the number of volumes that it has by itself.
    let counted = all.into_iter().map(|located| (located.finding.volumes.len(), located));
    let key = |(_, located): &(usize, Located)| {
        let finding = &located.finding;
        let ([volume, ..], []) = (&finding.volumes[..], &finding.remedies[..]) else {
            return None;
        };
        let message = finding.message.replacen(&claim(volume), "claim", 1);
        let file = located.file().map(str::to_owned);
        Some((finding.rule, finding.action, file, message))
    };
    let merge = |(_, first): &mut (usize, Located), (_, located): (usize, Located)| {
        // A file may be rendered twice.
        if located.finding.volumes.iter().all(|volume| !first.finding.volumes.contains(volume)) {
            first.finding.volumes.extend(located.finding.volumes);
        }
        None
    };
    folded(counted, key, merge)
        .into_iter()
        .map(|(own, mut located)| {
            let more: Vec<String> = located.finding.volumes[own..].iter().map(claim).collect();
            if !more.is_empty() {
                located.finding.message +=
                    &format!(" The same holds for {}.", listed(&more, "and"));
            }
            located
        })
        .collect()
}

/// Merges findings on the same line that several charts or kustomizations include.
pub(super) fn findings(all: Vec<Located>) -> Vec<Located> {
    let key = |located: &Located| {
        let finding = &located.finding;
        let object = &finding.object;
        let place = located.place.as_ref().filter(|place| place.template.is_some())?;
        let object_name = (object.kind.clone(), object.name.clone());
        let line = (place.file.clone(), place.line.number);
        let message = without_object(&finding.message, object);
        Some((finding.rule, finding.action, object_name, line, message))
    };
    folded(all, key, |first, located| {
        let further = first.also.iter().map(|(_, place)| place);
        let mut places = first.place.iter().chain(further);
        // It already includes the output of this template.
        if places.any(|place| place.template.as_deref() == located.template()) {
            return Some(located);
        }
        first.also.extend(located.place.map(|place| (located.finding.object, place)));
        None
    })
}

/// Merges equal notices about several objects of one kind into the first one.
pub(super) fn notices(all: Vec<Notice>) -> Vec<Notice> {
    let key = |(notice, _): &(Notice, usize)| {
        let object = notice.object.as_ref()?;
        Some((object.kind.clone(), notice.text.clone()))
    };
    let counted = all.into_iter().map(|notice| (notice, 0));
    folded(counted, key, |(_, more), _| {
        *more += 1;
        None
    })
    .into_iter()
    .map(|(mut notice, more)| {
        let kind = notice.object.as_ref().map(|object| object.kind.as_str());
        if let (Some(kind), 1..) = (kind, more) {
            let objects = match more {
                1 => format!("one more {kind}"),
                more => format!("{more} more objects of kind {kind}"),
            };
            notice.text += &format!(" The same holds for {objects}.");
        }
        notice
    })
    .collect()
}

/// The message without the name of its object and, in its commands, without the namespace.
fn without_object(message: &str, object: &ObjectRef) -> String {
    let unnamed = message.strip_prefix(&object.to_string()).unwrap_or(message);
    let text = unnamed.strip_prefix(": ").unwrap_or(unnamed);
    match &object.namespace {
        Some(namespace) => text.replace(&format!("kubectl -n {namespace} "), "kubectl "),
        None => text.to_owned(),
    }
}
