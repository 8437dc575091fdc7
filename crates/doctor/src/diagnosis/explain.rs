//! Explains a line of an Event without a cluster, for someone who has a ticket but no access.

use serde::Serialize;

use super::command::quoted;
use super::messages::{CATALOG, Message};
use engine::model::metadata::is_name;

/// The explanation of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The words of the line that people search for.
    pub searched: &'static str,
    /// The component that writes the line, and the Kubernetes versions in which it does so if not
    /// all.
    pub says: String,
    /// The meaning of the line, in sentences.
    pub meaning: &'static str,
    /// Commands that show more. Names in capitals are placeholders.
    pub look: Vec<String>,
    /// The way out, in sentences.
    pub fix: &'static str,
    /// The codes of the causes that the line may have, the likeliest first.
    pub causes: &'static [String],
    /// The place of the words in the source of Kubernetes or of a driver.
    pub source: &'static str,
}

impl Message {
    /// Explains the line; names are taken from `text`.
    fn explanation(&'static self, text: &str) -> Explanation {
        Explanation {
            searched: &self.searched,
            says: std::iter::once(self.says.as_str())
                .chain(self.minors.iter().flat_map(|minors| [", ", minors]))
                .collect(),
            meaning: &self.meaning,
            look: self.look().map(|command| filled(command, text)).collect(),
            fix: &self.out,
            causes: &self.causes,
            source: &self.source,
        }
    }
}

/// Explains a line of an Event or of the scheduler; `None` if the line is not known. The words by
/// which people search for such a line are enough.
pub fn explain(text: &str) -> Option<Explanation> {
    let line = text.to_lowercase();
    let messages = &CATALOG.messages;
    messages
        .iter()
        .find(|message| message.is_in(&line))
        .or_else(|| messages.iter().find(|message| line.contains(&message.searched.to_lowercase())))
        .map(|message| message.explanation(text))
}

/// Every explanation, without names.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    CATALOG.messages.iter().map(|message| message.explanation(""))
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
        let name = opening
            .and_then(|opening| text.split_once(opening)?.1.split('"').next())
            .filter(|name| is_name(name))
            .map_or(unknown.into(), quoted);
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
            assert!(explain(known.searched).is_some(), "{}", known.searched);
        }
    }

    #[test]
    fn each_wording_is_recognised() {
        let seen: BTreeMap<String, Vec<String>> =
            serde_saphyr::from_str(include_str!("seen.yaml")).unwrap();
        assert_eq!(seen.values().flatten().count(), 45);
        for (searched, lines) in seen {
            for line in lines {
                let found = explain(&line).map(|explanation| explanation.searched);
                assert_eq!(found, Some(searched.as_str()), "{line}");
            }
        }
        for line in ["", "Back-off pulling image \"x\"", "2 Insufficient cpu"] {
            assert_eq!(explain(line), None, "{line}");
        }
    }

    #[test]
    fn names_from_the_line_are_filled_in() {
        for (volume, command) in [
            ("pv-data", "kubectl get pv pv-data"),
            // Text that cannot be the name of an object does not get into a command.
            ("$(reboot)", "kubectl get pv VOLUME"),
        ] {
            let line = format!(
                "AttachVolume.Attach failed for volume \"{volume}\" : already attached to n1"
            );
            let look = explain(&line).map(|explanation| explanation.look).unwrap_or_default();
            assert!(look.contains(&command.to_owned()), "{look:?}");
        }
    }
}
