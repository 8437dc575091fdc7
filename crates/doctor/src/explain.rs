//! Explains lines of Events, logs and tickets without a cluster, for someone who has a ticket but no
//! access.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use serde::Serialize;

use super::command::quoted;
use super::messages::{CATALOG, Message};
use super::pasted::{self, Line};
use engine::model::Text;
use engine::model::event::Involved;
use engine::model::metadata::is_name;

/// What a pasted text means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The explanations of the known lines, each once; those of harmless lines come last.
    pub known: Vec<Explanation>,
    /// The lines that report an error in words that the catalog does not know.
    pub unknown: BTreeSet<String>,
}

/// The explanation of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The object that the line is about, if the text names it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// The words of the line that people search for.
    pub searched: &'static str,
    /// The words by which the line is recognised, with `*` for any text and `?` for one word.
    #[serde(skip)]
    pub words: &'static [String],
    /// The component that writes the line, and the Kubernetes versions in which it does so if not
    /// all.
    pub says: String,
    /// Whether the line reports no error.
    pub harmless: bool,
    /// The meaning of the line, in sentences.
    pub meaning: String,
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
    /// Explains the line, which may quote an answer that the entry does not know.
    fn explanation(&'static self, line: &Line, answer: &str) -> Explanation {
        let Involved { kind, namespace, name, .. } = &line.about;
        Explanation {
            object: [kind, namespace, name]
                .map(Text::as_str)
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
            searched: &self.searched,
            words: &self.patterns,
            says: std::iter::once(self.says.as_str())
                .chain(self.minors.iter().flat_map(|minors| [", ", minors]))
                .collect(),
            harmless: self.harmless,
            meaning: format!("{} {answer}", self.meaning).trim_end().to_owned(),
            look: self.look().map(|command| filled(command, line)).collect(),
            fix: &self.out,
            causes: if answer.is_empty() { &self.causes } else { &[] },
            source: &self.source,
        }
    }
}

/// Explains each line of a text: an Event's message, what kubectl prints of objects and Events, a
/// log. The words by which people search for a line are enough.
pub fn explain(text: &str) -> Explained {
    let mut explained = Explained::default();
    let mut seen = HashSet::new();
    for line in pasted::lines(text) {
        let (entries, answer) = entries(&line.text);
        if entries.is_empty() && ERRORS.iter().any(|word| line.text.contains(word)) {
            explained.unknown.insert(line.text.clone());
        }
        for entry in entries {
            let explanation = entry.explanation(&line, &answer);
            let Explanation { object, searched, look, .. } = &explanation;
            if seen.insert((object.clone(), *searched, look.clone())) {
                explained.known.push(explanation);
            }
        }
    }
    explained.known.sort_by_key(|explanation| explanation.harmless);
    explained
}

/// Words of lines that report an error.
const ERRORS: [&str; 4] = ["Warning", "Error", "error", "ailed"];

/// Every explanation, without names.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    CATALOG.entries().map(|entry| entry.explanation(&Line::default(), ""))
}

/// The entries that explain the line, and the answer that it quotes if they say only what failed.
fn entries(text: &str) -> (Vec<&'static Message>, String) {
    let line = text.to_lowercase();
    let operation = first(&CATALOG.operations, &line);
    let mut found: Vec<_> = CATALOG
        .messages
        .iter()
        .filter(|message| message.is_said_during(operation))
        .filter_map(|message| Some((message.place(&line)?, message)))
        .collect();
    if found.is_empty() {
        let general = operation.or_else(|| first(&CATALOG.hints, &line));
        return (Vec::from_iter(general), answer(text).unwrap_or_default());
    }
    found.sort_by_key(|(place, _)| place.start);
    // The words of one entry may be a part of another one's, which says more.
    let is_part = |place: &Range<usize>| {
        found.iter().any(|(other, _)| {
            other != place && other.start <= place.start && place.end <= other.end
        })
    };
    let entries = found.iter().filter(|(place, _)| !is_part(place)).map(|(_, message)| *message);
    (entries.collect(), String::new())
}

/// The entry whose words come first in the line.
fn first(entries: &'static [Message], line: &str) -> Option<&'static Message> {
    entries
        .iter()
        .filter_map(|entry| Some((entry.place(line)?, entry)))
        .min_by_key(|(place, _)| (place.start, Reverse(place.end)))
        .map(|(_, entry)| entry)
}

/// What the last gRPC code in the line promises, with the words after it.
fn answer(text: &str) -> Option<String> {
    let (code, words) = text.rsplit_once("code = ")?.1.split_once(" desc = ")?;
    let sentence = CATALOG.codes.get(&code.to_lowercase())?;
    Some(sentence.replace("{code}", code).replace("{words}", words.trim()))
}

/// For each name in a command: its placeholder, the kind of its object, the words before the name
/// in a line, and the text to use if there is no such name.
const NAMES: [(&str, &str, &str, &str); 3] = [
    ("{volume}", "PersistentVolume", "for volume \"", "VOLUME"),
    ("{claim}", "PersistentVolumeClaim", "persistentvolumeclaim \"", "CLAIM"),
    ("{pod}", "Pod", "condition on pods/", "POD"),
];

fn filled(command: &str, Line { text, about }: &Line) -> String {
    let namespace = if is_name(&about.namespace) { &about.namespace } else { "NAMESPACE" };
    let mut command = command.replace("{namespace}", namespace);
    for (place, kind, opening, unknown) in NAMES {
        let name = text
            .split_once(opening)
            .and_then(|(_, rest)| rest.split(['"', ' ']).next())
            .or((about.kind == kind).then_some(about.name.as_str()))
            .filter(|name| is_name(name))
            .map_or(unknown.into(), quoted);
        command = command.replace(place, &name);
    }
    command
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const CORPUS: &str = include_str!("../../../tests/lines/corpus.tsv");

    /// The names of the entries that explain the line.
    fn names(line: &str) -> BTreeSet<&'static str> {
        entries(line).0.into_iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn each_line_of_the_corpus_has_its_meaning() {
        let mut uses: BTreeMap<&str, usize> =
            CATALOG.entries().map(|entry| (entry.name.as_str(), 0)).collect();
        let mut wrong = Vec::new();
        let rows = CORPUS.lines().skip(1);
        assert!(rows.clone().count() >= 400);
        for row in rows {
            let [_, _, _, entry, line] = Vec::from_iter(row.split('\t'))[..] else {
                panic!("{row}");
            };
            let expected: BTreeSet<&str> =
                entry.split('+').filter(|name| *name != "unknown").collect();
            for name in &expected {
                *uses.get_mut(name).unwrap_or_else(|| panic!("no entry {name}: {line}")) += 1;
            }
            if names(line) != expected {
                wrong.push(format!("{:?} instead of {entry}: {line}", names(line)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        uses.retain(|_, count| *count < 2);
        assert!(uses.is_empty(), "{uses:?} explain fewer than two lines of the corpus");
    }

    #[test]
    fn the_words_that_people_search_for_are_explained() {
        for entry in CATALOG.entries() {
            assert_eq!(names(&entry.searched), BTreeSet::from([entry.name.as_str()]));
        }
    }

    #[test]
    fn a_code_is_no_cause() {
        let said = |line: &str| explain(line).known.remove(0);
        let failed = "AttachVolume.Attach failed for volume \"pv-1\" : ";
        assert!(!said(failed).causes.is_empty());
        for code in CATALOG.codes.keys() {
            let explanation = said(&format!("{failed}rpc error: code = {code} desc = odd words"));
            assert!(explanation.causes.is_empty(), "{code}");
            for words in [code.as_str(), "\"odd words\"", "Kubernetes tries again by itself"] {
                assert!(explanation.meaning.contains(words), "{words}: {}", explanation.meaning);
            }
        }
        // Whatever a program makes up is no code.
        assert_eq!(said(&format!("{failed}rpc error: code = Odd desc = {{code}}")), said(failed));
    }

    /// The object and the searched words of each explanation.
    fn known(text: &str) -> Vec<(String, &'static str)> {
        explain(text)
            .known
            .into_iter()
            .map(|explanation| (explanation.object, explanation.searched))
            .collect()
    }

    #[test]
    fn a_pasted_block_is_explained_by_object_with_harmless_lines_last() {
        let events = |name: &str| {
            format!(
                "Name:             {name}\nNamespace:        shop\nNode:             n1/10.0.0.1\nEvents:\n  \
                 Normal   SuccessfulAttachVolume  9s  attachdetach-controller  AttachVolume.Attach succeeded for volume \"pv-1\"\n  \
                 Warning  FailedMount  5s  kubelet  MountVolume.SetUp failed for volume \"pv-1\" : mount failed: exit status 32\n\
                 Mounting command: mount\nMounting arguments: -t nfs nas:/a /b\n\
                 Output: mount.nfs: access denied by server while mounting nas:/a\n  \
                 Warning  BackOff  1s  kubelet  Back-off restarting failed container\n"
            )
        };
        let text = format!("{}{}{}", events("web-1"), events("web-2"), events("web-1"));
        let refused = "access denied by server while mounting";
        let attached = "AttachVolume.Attach succeeded";
        let [one, two] = ["Pod shop web-1", "Pod shop web-2"].map(str::to_owned);
        assert_eq!(
            known(&text),
            [(one.clone(), refused), (two.clone(), refused), (one, attached), (two, attached)]
        );
        let explained = explain(&text);
        assert_eq!(explained.unknown.len(), 1, "{:?}", explained.unknown);
        assert!(
            explained.known[1]
                .look
                .contains(&"multi-attach-guard diagnose -n shop pod/web-2".to_owned()),
            "{:?}",
            explained.known[1].look
        );
    }

    #[test]
    fn objects_are_named_by_tables_and_by_json() {
        let table = "LAST SEEN   TYPE      REASON        OBJECT      SUBOBJECT   SOURCE        MESSAGE\n\
             3m   Warning   FailedMount   pod/web-1               kubelet, n1   MountVolume.SetUp failed for volume \"pv-1\" : x\n\
             3m   Warning   ProvisioningFailed   persistentvolumeclaim/data   p   storageclass.storage.k8s.io \"fast\" not found\n";
        let [mount, class] =
            ["MountVolume.SetUp failed for volume", "storageclass.storage.k8s.io not found"];
        assert_eq!(
            known(table),
            [("Pod web-1".to_owned(), mount), ("PersistentVolumeClaim data".to_owned(), class)]
        );
        let event = |name: &str| {
            serde_json::json!({
                "kind": "Event",
                "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name},
                "message": "MountVolume.SetUp failed for volume \"pv-1\" : odd\nOutput: words",
                "metadata": {"name": "x.1"},
            })
        };
        let list = serde_json::json!({"kind": "List", "items": [event("web-1"), event("web-2")]});
        for text in [list.to_string(), format!("{list:#}")] {
            assert_eq!(
                known(&text),
                [("Pod shop web-1".to_owned(), mount), ("Pod shop web-2".to_owned(), mount)]
            );
        }
        assert_eq!(known(&event("web-1").to_string()).len(), 1);
        let attachment = r#"{"status": {"attachError": {"message": "rpc error: desc = Instance \"i-1\" not found"}}}"#;
        assert_eq!(known(attachment)[0].1, "the back end does not know the machine");
    }

    #[test]
    fn bad_input_is_read_line_by_line() {
        assert_eq!(explain(""), Explained::default());
        assert_eq!(explain("\u{1b}[31m\u{0}\r\n\u{202e}"), Explained::default());
        let line = "E1128 nestedpendingoperations.go:348] AttachVolume.Attach failed for volume \"pv-1\" : rpc error: code = Internal desc = request";
        let rest = "x".repeat(1000);
        let log: Vec<String> = (0..1000).map(|number| format!("{line} {number} {rest}")).collect();
        assert!(log.join("\n").len() > 1 << 20);
        assert_eq!(explain(&log.join("\n")).known.len(), 1);
        // One long line of words that begin many patterns.
        let hostile = "umount snapshot desc = volume ".repeat(10_000);
        assert!(explain(&hostile).known.is_empty());
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
            let look = explain(&line).known.remove(0).look;
            assert!(look.contains(&command.to_owned()), "{look:?}");
        }
        let hostile =
            "Name: $(reboot)\nNamespace: ;reboot\nNode: x\nMulti-Attach error for volume \"a\"";
        let look = explain(hostile).known.remove(0).look;
        assert!(
            look.contains(&"multi-attach-guard diagnose -n NAMESPACE pod/POD".to_owned()),
            "{look:?}"
        );
    }
}
