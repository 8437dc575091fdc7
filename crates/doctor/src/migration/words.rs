//! The sentences of a plan, which are in `words.txt`.

const TEXT: &str = include_str!("words.txt");

/// The text of that name, its places filled in from `values`. A name that is not in the file
/// gives an empty text.
pub(super) fn words(name: &str, values: &[(&str, &str)]) -> String {
    let mut lines = TEXT.lines();
    let template = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    filled(template.unwrap_or_default(), values)
}

/// What is filled in may look like a place itself, and stays as it is.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text += before;
        let Some((place, behind)) = after.split_once('}') else {
            rest = after;
            break;
        };
        let value = values.iter().find(|(name, _)| *name == place);
        text += value.map_or("", |(_, value)| value);
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SOURCES: [&str; 4] = [
        include_str!("steps.rs"),
        include_str!("downtime.rs"),
        include_str!("suspension.rs"),
        include_str!("plan.rs"),
    ];

    /// The parts of a step, which are looked up by its name.
    const PARTS: [&str; 4] = ["title", "blocks", "text", "then"];

    #[test]
    fn places_are_filled_once() {
        let values = [("a", "{b}"), ("b", "x")];
        assert_eq!(filled("{a} and {b}, {c}.", &values), "{b} and x, .");
        assert_eq!(filled("plain", &values), "plain");
        assert_eq!(words("no-such.name", &[]), "");
    }

    #[test]
    fn every_sentence_is_there_and_used() {
        let written = TEXT.lines().filter(|line| !line.starts_with('#'));
        let written: BTreeSet<&str> = written
            .filter_map(|line| Some(line.split_once(": ")?.0))
            .collect();
        let is_name = |word: &&str| {
            word.contains('.')
                && word
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || ".-".contains(c))
        };
        let quoted = SOURCES
            .iter()
            .flat_map(|source| source.split('"').skip(1).step_by(2));
        let used: BTreeSet<&str> = quoted
            .filter(is_name)
            .filter(|it| !it.ends_with(".yaml"))
            .collect();
        let of_steps = SOURCES
            .iter()
            .flat_map(|source| source.split("step(\"").skip(1));
        let steps: BTreeSet<&str> = of_steps.filter_map(|it| it.split('"').next()).collect();
        for name in &used {
            assert!(written.contains(name), "{name} is not in words.txt");
        }
        for step in &steps {
            let title = format!("{step}.title");
            assert!(
                written.contains(title.as_str()),
                "{title} is not in words.txt"
            );
        }
        for name in written {
            let (step, part) = name.split_once('.').unwrap();
            let is_part = steps.contains(step) && PARTS.contains(&part);
            assert!(is_part || used.contains(name), "nobody uses {name}");
        }
    }
}
