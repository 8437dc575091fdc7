//! Explains a line of an Event without a cluster, for someone who has a ticket but no access.

use super::command::quoted;
use super::messages::{Explanation, messages};
use engine::model::metadata::is_name;

impl Explanation {
    /// The explanation with its commands; names are taken from `text`.
    fn filled(&self, text: &str) -> Self {
        let mut explanation = self.clone();
        explanation.look = self.commands().map(|it| filled(it, text)).collect();
        explanation
    }
}

/// Explains a line of an Event or of the scheduler; `None` if the line is not known. The words by
/// which people search for such a line are enough.
pub fn explain(text: &str) -> Option<Explanation> {
    let line = text.to_lowercase();
    let by_pattern = messages().iter().find(|it| it.is_in(&line));
    let searched = || {
        let mut messages = messages().iter();
        messages.find(|it| line.contains(&it.searched.to_lowercase()))
    };
    Some(by_pattern.or_else(searched)?.filled(text))
}

/// Every explanation, without names.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    messages().iter().map(|it| it.filled(""))
}

/// For each name in a command: its placeholder, the words before the name in a line, and the text
/// to use if the line has no such name.
const NAMES: [(&str, Option<&str>, &str); 4] = [
    ("{volume}", Some("for volume \""), "VOLUME"),
    ("{claim}", Some("persistentvolumeclaim \""), "CLAIM"),
    ("{pod}", None, "POD"),
    ("{namespace}", None, "NAMESPACE"),
];

fn filled(command: &str, text: &str) -> String {
    let mut command = command.to_owned();
    for (place, opening, unknown) in NAMES {
        let name = opening.and_then(|opening| text.split_once(opening)?.1.split('"').next());
        let name = name.filter(|name| is_name(name));
        let name = name.map_or(unknown.into(), quoted);
        command = command.replace(place, &name);
    }
    command
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_words_that_people_search_for_are_explained() {
        for known in explanations() {
            assert!(explain(&known.searched).is_some(), "{}", known.searched);
        }
    }

    #[test]
    fn each_wording_is_recognised() {
        let seen: BTreeMap<String, Vec<String>> =
            serde_saphyr::from_str(include_str!("seen.yaml")).unwrap();
        assert_eq!(seen.values().flatten().count(), 45);
        for (searched, lines) in seen {
            for line in lines {
                let found = explain(&line).map(|it| it.searched);
                assert_eq!(found.as_ref(), Some(&searched), "{line}");
            }
        }
        for line in ["", "Back-off pulling image \"x\"", "2 Insufficient cpu"] {
            assert_eq!(explain(line), None, "{line}");
        }
    }

    #[test]
    fn names_from_the_line_are_filled_in() {
        let line = "AttachVolume.Attach failed for volume \"pv-data\" : already attached to n1";
        let look = explain(line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv pv-data".to_owned()),
            "{look:?}"
        );
        // Text that cannot be the name of an object does not get into a command.
        let line = line.replace("pv-data", "$(reboot)");
        let look = explain(&line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv VOLUME".to_owned()),
            "{look:?}"
        );
    }
}
