//! `rules`: what each rule means, in its own words.

use std::process::ExitCode;

use clap::Args;

use super::output::{complain, print};
use engine::rules::{RULES, Rule, codes};

/// The options of `rules`.
#[derive(Args, Clone, Debug)]
pub struct RulesOptions {
    /// Rule to explain; without one, all are listed
    #[arg(value_name = "CODE")]
    pub code: Option<String>,

    /// Print all rules as one Markdown page
    #[arg(long, conflicts_with = "code")]
    pub markdown: bool,
}

pub(super) fn run(options: &RulesOptions) -> ExitCode {
    let text = match &options.code {
        None if options.markdown => markdown(),
        None => list(),
        Some(code) => match RULES.iter().find(|rule| rule.code == code) {
            Some(rule) => format!("# {}\n\n{}", rule.code, nested(rule, "#")),
            None => {
                let known = codes::ALL.join(", ");
                complain(&format!(
                    "There is no rule \"{code}\". The rules are: {known}."
                ));
                return ExitCode::from(2);
            }
        },
    };
    print("rules", text.as_bytes())
}

fn list() -> String {
    let width = RULES.iter().map(|rule| rule.code.len()).max();
    let width = width.unwrap_or_default();
    RULES
        .iter()
        .map(|rule| format!("{:width$}  {}\n", rule.code, rule.documentation().summary()))
        .collect()
}

/// The page `docs/rules.md`: all rules, each as its own file documents it.
#[must_use]
fn markdown() -> String {
    let mut page =
        "# Rules\n\nWhat multi-attach-guard finds. This page is made from the rules' own \
                    documentation: `multi-attach-guard rules --markdown`. An \
                    *exclusive* volume attaches to one node at a time.\n\n"
            .to_owned();
    for rule in &RULES {
        let summary = rule.documentation().summary().to_owned();
        page += &format!("- [`{code}`](#{code}): {summary}\n", code = rule.code);
    }
    for rule in &RULES {
        page += &format!("\n## {}\n\n{}", rule.code, nested(rule, "##"));
    }
    page
}

/// A rule's documentation with its headings one level below `above`.
fn nested(rule: &Rule, above: &str) -> String {
    let mut code = false;
    rule.documentation()
        .text()
        .lines()
        .map(|line| {
            code ^= line.starts_with("```");
            if !code && line.starts_with('#') {
                format!("{above}{line}\n")
            } else {
                format!("{line}\n")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn the_page_in_docs_is_up_to_date() {
        let page = include_str!("../../docs/rules.md");
        assert!(
            page == markdown(),
            "docs/rules.md is stale. Run `make rules`."
        );
    }

    #[test]
    fn comments_in_examples_are_no_headings() {
        let page = markdown();
        let headings: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("## "))
            .collect();
        assert_eq!(headings.len(), engine::rules::RULES.len());
        assert!(page.contains("\n  # no strategy: RollingUpdate, 25 %\n"));
        assert!(page.contains("\n### Fires on\n"));
    }
}
