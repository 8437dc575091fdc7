//! The text of a denial: the cause, one thing to do, and where to read more.
//!
//! Users read it in a terminal or in a controller's condition, where long text is cut off or
//! skipped. The finding's message is complete.

use std::borrow::Cow;

use crate::model::object::ObjectRef;
use crate::model::words::cut;
use crate::rules::Hazard;

/// Characters of a denial for one finding.
pub const DENIAL_LENGTH: usize = 350;

/// The sentences that say the cause, the most complete one first.
const CAUSES: [fn(&Hazard) -> Cow<'_, str>; 4] = [
    |hazard| hazard.what.as_str().into(),
    |hazard| without_asides(&hazard.what).into(),
    |hazard| format!("{}.", hazard.brief).into(),
    // The part after a semicolon says what to do.
    |hazard| format!("{}.", hazard.brief.split(';').next().unwrap_or_default()).into(),
];

/// The longest denial for `hazard` that fits. `ways` are sentences that say what to do, the best
/// first.
pub(super) fn text(object: &ObjectRef, hazard: &Hazard, ways: &[String]) -> String {
    let more = format!("More: multi-attach-guard rules {}", hazard.rule);
    let object = format!("{object}: ");
    let length = |text: &str| text.chars().count();
    let room = DENIAL_LENGTH - length(&more) - 1;
    let fitting = ways
        .iter()
        .flat_map(|way| CAUSES.iter().map(move |cause| (cause(hazard), way)))
        // A blank between the two takes the last character.
        .find(|(cause, way)| length(&object) + length(cause) + length(way) < room);
    let said = match fitting {
        Some((cause, way)) => [&object, &*cause, " ", way].concat(),
        None => format!("{object}{}.", hazard.brief),
    };
    [&*cut(&said, room), " ", &more].concat()
}

/// The text without its parentheses.
pub(super) fn without_asides(text: &str) -> String {
    let mut parts = text.split(" (");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    plain
}

/// The first thing that an advice says to do, as a sentence; others may follow it.
pub(super) fn first_step(advice: &str) -> String {
    let ends = [", or ", "; or ", ". "];
    let end = ends.iter().filter_map(|end| advice.find(end)).min();
    let step = end.map_or(advice, |end| &advice[..end]);
    format!("{}.", step.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Certainty, Outcome, codes};

    fn denial(name: &str, what: &str, ways: &[String]) -> String {
        let object = ObjectRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: name.into(),
        };
        let hazard = Hazard {
            rule: codes::ROLLING_UPDATE_OVERLAP,
            outcome: Outcome::Deadlock,
            certainty: Certainty::Verified,
            field_path: String::new(),
            volumes: Vec::new(),
            excess: 0,
            what: what.to_owned(),
            advice: "Set a to b, or c to d. Or move it.".to_owned(),
            brief: "it hangs".to_owned(),
        };
        let step = [first_step(&hazard.advice)];
        text(&object, &hazard, if ways.is_empty() { &step } else { ways })
    }

    #[test]
    fn the_longest_text_that_fits_is_taken_and_always_says_where_the_rest_stands() {
        let more = "More: multi-attach-guard rules rolling-update-overlap";
        let long = "x".repeat(DENIAL_LENGTH);
        let aside = format!("It hangs ({long}), for good.");
        let cases = [
            ("web", "It hangs for good.", vec![], format!("It hangs for good. Set a to b. {more}")),
            ("web", &long, vec![], format!("it hangs. Set a to b. {more}")),
            ("web", "Why.", vec!["Run it.".to_owned()], format!("Why. Run it. {more}")),
            ("web", &aside, vec![], format!("It hangs, for good. Set a to b. {more}")),
            (
                "web",
                "Why.",
                vec![long.clone(), "Run it.".to_owned()],
                format!("Why. Run it. {more}"),
            ),
            ("web", "Why.", vec![long.clone()], format!("it hangs. {more}")),
        ];
        for (name, what, ways, expected) in cases {
            assert_eq!(denial(name, what, &ways), format!("Deployment shop/{name}: {expected}"));
        }
        let cut = denial(&long, "Why.", &[]);
        assert_eq!(cut.chars().count(), DENIAL_LENGTH);
        assert!(cut.ends_with(&format!("x… {more}")), "{cut}");
    }
}
