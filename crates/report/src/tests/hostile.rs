//! Tests that no format prints the content of names, reasons and files as anything but text.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const PARTS: [&str; 34] = [
    "a",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    ":",
    "::",
    "::error::x",
    "::stop-commands::x",
    "##[add-mask]x",
    "#",
    "##",
    "vso[task.setvariable variable=x]y",
    "[",
    "\x1b[2J",
    "\x07",
    "\u{9b}31m",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{ad}",
    "\u{3164}",
    "\u{e0100}",
    "\u{1d173}",
    "\u{a0}",
    "]]>",
    "&<\"'",
    "```",
];

/// A report in which every text is hostile, except the names of rules and remedies.
fn hostile(texts: &[String]) -> Report {
    let mut report = report();
    let mut texts = texts.iter().cycle().cloned();
    let mut next = || texts.next().unwrap_or_default();
    for located in &mut report.findings {
        let finding = &mut located.finding;
        finding.object = ObjectRef {
            api_version: next().into(),
            kind: next().into(),
            namespace: Some(next().into()),
            name: next().into(),
        };
        finding.field_path = next();
        finding.volumes = vec![next().into()];
        finding.message = next();
        finding.brief = next();
        finding.step = next();
        located.by_fix = Some(next());
        located.excerpts = vec![crate::Excerpt {
            file: next(),
            marks: vec![crate::Mark {
                line: crate::Line { text: next(), ..mark(1, "a", "", true).line },
                before: next(),
                label: next(),
                ..mark(1, "a", "", true)
            }],
        }];
        if let Some(suppressed) = &mut finding.suppressed {
            suppressed.reason = next();
        }
        if let Some(fix) = &mut located.fix {
            fix.removed = vec![next()];
            fix.added = vec![next()];
        }
        located.users =
            vec![ObjectRef { kind: next().into(), name: next().into(), ..finding.object.clone() }];
        if let Some(place) = &mut located.place {
            place.file = next();
            place.path = Some(next());
            place.template = Some(next());
            place.line.text = next();
        }
    }
    report.notices[0].text = next();
    report.incomplete = vec![crate::Notice { text: next(), ..report.notices[0].clone() }];
    report.unread[0].file = next();
    report.unread[0].path = Some(next());
    report.unread[0].message = next();
    report.not_judged[0].what = next();
    report.not_judged[0].place = next();
    report.not_judged[0].reason = next();
    report.not_judged[0].command = Some(next());
    report.hints = vec![format!("By namespace: {}", next())];
    report.judged[0].object.name = next().into();
    report.judged[0].file = Some(next());
    let live = of_cluster();
    report.stuck = live.stuck;
    let case = &mut report.stuck[0].case;
    case.explanation = next();
    case.volume.namespace = next().into();
    case.volume.claim = next().into();
    case.waiting[0].pod = next().into();
    case.waiting[0].node = Some(next().into());
    case.steps[0].command = Some(next());
    case.steps[0].text = next();
    report.stuck[0].owner = Some(Owner { name: next(), change: next(), command: Some(next()) });
    report.findings[0].owner = report.stuck[0].owner.clone();
    report.findings[0].command = Some(next());
    report.overrides = live.overrides;
    report.overrides[0].object.name = next().into();
    report.overrides[0].sets = [("action", next())].into();
    report.overrides[0].reason = next();
    report.overrides[0].by = Some(next());
    report.overrides[0].until = Some(next());
    report.overrides[0].ignored = Some(next());
    report.open = vec![next()];
    report.summary.skipped = [(next(), 1)].into();
    report
}

/// Whether the character must not appear in any format.
fn is_forbidden(letter: char) -> bool {
    (letter.is_control() && letter != '\n')
        || "\u{2028}\u{202e}\u{2066}\u{200f}\u{fffe}\u{ffff}\u{ad}\u{3164}\u{e0100}\u{1d173}"
            .contains(letter)
}

fn is_command(line: &str) -> bool {
    line.trim_start().starts_with("::")
}

proptest! {
    // Each SARIF report contains the documentation of every rule, which is slow.
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_of_a_manifest_is_more_than_text(
        texts in prop::collection::vec(
            prop::collection::vec(select(&PARTS[..]), 0..6).prop_map(|parts| parts.concat()),
            1..40,
        )
    ) {
        let report = hostile(&texts);
        for format in Format::ALL {
            let out = written(&report, format);
            prop_assert!(!out.contains(is_forbidden), "{format:?}: {out:?}");
            for marker in ["##[", "##vso[", "##avso["] {
                prop_assert!(!out.contains(marker), "{format:?}: {out:?}");
            }
            let commands = out.lines().filter(|line| is_command(line)).count();
            // The commands are two findings, one suppression, two notices, an unread file and a chart
            // that was not judged.
            let ours = if format == Format::Github { 7 } else { 0 };
            prop_assert_eq!(commands, ours, "{:?}: {:?}", format, out);
            if format == Format::Github {
                prop_assert_eq!(out.lines().count(), ours, "{:?}", out);
            }
        }
        // The lines are a stuck volume, two findings, one suppression, two notices, an override, a
        // fact that was not seen, a chart that was not judged, and the counts.
        prop_assert_eq!(written(&report, Format::Concise).lines().count(), 10);
        let junit = written(&report, Format::Junit);
        prop_assert!(roxmltree::Document::parse(&junit).is_ok(), "{junit:?}");
        let json: Value = serde_json::from_str(&written(&report, Format::Json)).unwrap();
        prop_assert_eq!(json["findings"][0]["message"].as_str(), Some(&*report.findings[0].finding.message));
        let sarif: Value = serde_json::from_str(&written(&report, Format::Sarif)).unwrap();
        prop_assert_eq!(sarif["runs"][0]["results"][0]["message"]["text"].as_str(), Some(&*report.findings[0].finding.message));
    }
}

/// Names that created links, images, mentions or HTML in a comment, and their parts.
const MARKUP: [&str; 35] = [
    "```![x](http://e)<b>@org/team",
    "`![x](http://e)`",
    "``<img src=x>``",
    "`a` @team `b",
    "www.example.com",
    "https://example.com/a?b=c",
    "http://example.com",
    "ftp://example.com",
    "a@example.com",
    "mailto:a@example.com",
    "xmpp:a@example.com",
    "<https://example.com>",
    "<a@example.com>",
    "[a](b)",
    "[a]: http://e\n[a]",
    "![a][b]",
    "<b>",
    "</details>",
    "<!-- x -->",
    "<?x?>",
    "&lt;b&gt;&#64;team",
    "@team",
    "org/repo#1",
    "GH-1",
    "\\`<b>\\`",
    "\\",
    "`",
    "``",
    "[",
    "](x)",
    "!",
    "<",
    "@",
    " ",
    "W",
];

/// Renders the comment as GitHub does, and fails on nodes that only markup creates.
fn assert_only_text(comment: &str) {
    use comrak::nodes::NodeValue;
    let mut options = comrak::Options::default();
    options.extension.autolink = true;
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.footnotes = true;
    let arena = comrak::Arena::new();
    let ours = [
        "<!-- -->",
        "<!-- multi-attach-guard -->",
        "<details><summary>Why, and what helps</summary>",
        "</details>",
    ];
    let mentions = |text: &str| {
        let is_user =
            |after: &str| after.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let is_issue = |after: &str| after.starts_with(|letter: char| letter.is_ascii_digit());
        text.split('@').skip(1).any(is_user)
            || text.to_ascii_lowercase().split("gh-").skip(1).any(is_issue)
    };
    let root = comrak::parse_document(&arena, comment, &options);
    for node in root.descendants() {
        match &node.data().value {
            NodeValue::Link(link) => panic!("a link to {}: {comment}", link.url),
            NodeValue::Image(image) => panic!("an image of {}: {comment}", image.url),
            NodeValue::FootnoteDefinition(_) => panic!("a footnote: {comment}"),
            NodeValue::HtmlInline(html) => {
                assert!(ours.contains(&html.trim()), "{html:?}: {comment}");
            }
            NodeValue::HtmlBlock(block) => {
                let html = block.literal.trim();
                assert!(ours.contains(&html), "{html:?}: {comment}");
            }
            NodeValue::Text(text) => assert!(!mentions(text), "{text:?}: {comment}"),
            _ => {}
        }
    }
}

/// Sentences with the name, in the form of the rules' messages, with a command between backticks.
fn sentences(name: &str) -> String {
    format!("claim \"{name}\" is held. Run `kubectl -n {name} delete pod {name}`, or ask {name}.")
}

#[test]
fn a_comment_shows_no_links_images_mentions_or_html_of_hostile_names() {
    for name in MARKUP {
        for texts in [vec![name.to_owned()], vec![sentences(name)]] {
            assert_only_text(&written(&hostile(&texts), Format::Markdown));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_comment_shows_no_links_images_mentions_or_html(
        names in prop::collection::vec(
            prop::collection::vec(select(&MARKUP[..]), 0..6).prop_map(|parts| parts.concat()),
            1..20,
        )
    ) {
        let texts: Vec<String> = names.iter().flat_map(|name| [name.clone(), sentences(name)]).collect();
        assert_only_text(&written(&hostile(&texts), Format::Markdown));
    }
}
