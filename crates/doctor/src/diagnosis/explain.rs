//! What a line of an Event means, without a cluster: for someone with a ticket and no access.

use serde::Serialize;

use super::command::quoted;
use super::messages::{Message, catalog};
use engine::model::metadata::is_name;

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The words by which the line was recognised, as people search for them.
    pub searched: &'static str,
    /// Who writes the line, and in which Kubernetes where that differs.
    pub says: String,
    /// What has happened: sentences.
    pub meaning: &'static str,
    /// Commands that show more. Names in capitals are placeholders.
    pub look: Vec<String>,
    /// What ends it: sentences.
    pub fix: &'static str,
    /// The causes that it may come of, the likeliest first.
    pub causes: &'static [String],
    /// Where the words are in Kubernetes or in a driver.
    pub source: &'static str,
}

impl Message {
    /// What the line means; names are taken from `text`.
    fn explanation(&'static self, text: &str) -> Explanation {
        let look = self.look.iter().map(|it| filled(it.command(), text));
        let minors = self.minors.iter().flat_map(|it| [", ", it]);
        Explanation {
            searched: &self.searched,
            says: std::iter::once(self.says.as_str()).chain(minors).collect(),
            meaning: &self.meaning,
            look: look.collect(),
            fix: &self.out,
            causes: &self.causes,
            source: &self.source,
        }
    }
}

/// What a line of an Event, or of the scheduler, means; `None` where it is none that is known.
/// The words by which people search for such a line are enough.
pub fn explain(text: &str) -> Option<Explanation> {
    let line = text.to_lowercase();
    let by_pattern = catalog().iter().find(|it| it.is_in(&line));
    let searched = || {
        let mut messages = catalog().iter();
        messages.find(|it| line.contains(&it.searched.to_lowercase()))
    };
    Some(by_pattern.or_else(searched)?.explanation(text))
}

/// Every explanation, without names.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    catalog().iter().map(|it| it.explanation(""))
}

/// What stands for a name in a command, what precedes it in a line, and what to write where
/// the line has none.
const NAMES: [(&str, &[&str], &str); 4] = [
    ("{volume}", &["for volume \""], "VOLUME"),
    ("{claim}", &["persistentvolumeclaim \""], "CLAIM"),
    ("{pod}", &[], "POD"),
    ("{namespace}", &[], "NAMESPACE"),
];

fn filled(command: &str, text: &str) -> String {
    let mut command = command.to_owned();
    for (place, openings, unknown) in NAMES {
        let mut found = openings.iter().filter_map(|opening| {
            let name = text.split_once(opening)?.1.split('"').next()?;
            is_name(name).then_some(name)
        });
        let name = found.next().map_or(unknown.into(), quoted);
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
                let found = explain(&line).map(|it| it.searched);
                assert_eq!(found, Some(searched.as_str()), "{line}");
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
        // What is no name of an object does not get into a command.
        let line = line.replace("pv-data", "$(reboot)");
        let look = explain(&line).map(|it| it.look).unwrap_or_default();
        assert!(
            look.contains(&"kubectl get pv VOLUME".to_owned()),
            "{look:?}"
        );
    }
}
