//! `rules`: prints the documentation of each rule.

use std::io::{self, IsTerminal};
use std::mem;
use std::process::ExitCode;

use clap::Args;

use super::completion;
use super::output::{complain, did_you_mean, line, print};
use engine::model::words::{OF_FEW, nearest};
use engine::policy::keys;
use engine::remedy::{REMEDIES, Remedy};
use engine::rules::{RULES, Rule, codes};

/// The options of `rules`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RulesOptions {
    /// Rule to explain; without one, all are listed
    #[arg(value_name = "CODE", add = completion::words(codes::ALL))]
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
            Some(rule) => in_window(&format!(
                "# {}\n\n{}\n{}{}",
                rule.code,
                nested(rule, "#"),
                remedies(|remedy| remedy.cures(rule.code)),
                silence(rule.code)
            )),
            None => {
                let meant = did_you_mean(nearest(code, codes::ALL, OF_FEW));
                let known = codes::ALL.join(", ");
                complain(&format!("There is no rule \"{code}\".{meant} The rules are: {known}."));
                return ExitCode::from(2);
            }
        },
    };
    print("rules", text.as_bytes())
}

fn list() -> String {
    let column = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    let row = |rule: &Rule| line(&format!("{:column$}  ", rule.code), rule.summary());
    RULES.iter().map(row).collect()
}

/// The Markdown with its paragraphs and items folded to the window; unchanged in a pipe.
fn in_window(page: &str) -> String {
    if !io::stdout().is_terminal() {
        return page.to_owned();
    }
    let is_apart = |text: &str| {
        text.is_empty() || ["#", "|", "```"].iter().any(|start| text.starts_with(start))
    };
    let in_lines = |paragraph: String| match paragraph.strip_prefix("- ") {
        Some(item) => line("- ", item),
        None if paragraph.is_empty() => paragraph,
        None => line("", &paragraph),
    };
    let (mut folded, mut paragraph, mut is_code) = (String::new(), String::new(), false);
    for text in page.lines() {
        let is_verbatim = is_code || is_apart(text);
        is_code ^= text.starts_with("```");
        if is_verbatim {
            folded += &in_lines(mem::take(&mut paragraph));
            folded.extend([text, "\n"]);
        } else if paragraph.is_empty() || text.starts_with("- ") {
            folded += &in_lines(mem::replace(&mut paragraph, text.to_owned()));
        } else {
            paragraph.extend([" ", text.trim()]);
        }
    }
    folded + &in_lines(paragraph)
}

/// The page `docs/rules.md`: all rules, each as its own file documents it.
fn markdown() -> String {
    let mut page =
        "# Rules\n\nAll findings of multi-attach-guard. `multi-attach-guard rules --markdown` prints \
                    this page. An *exclusive* volume attaches to one node at a time.\n\n"
            .to_owned();
    let links = RULES.map(|rule| format!("[`{code}`](#{code})", code = rule.code));
    page += &format!("{}.\n", links.join(", "));
    for rule in &RULES {
        page += &format!("\n## {}\n\n{}", rule.code, nested(rule, "##"));
    }
    page + &format!("\n{}\n", remedies(|_| true).trim_end())
}

/// The changes that the remedies of a rule make, and their costs.
fn remedies(is_meant: impl Fn(&Remedy) -> bool) -> String {
    let meant: String = REMEDIES
        .iter()
        .filter(|remedy| is_meant(remedy))
        .map(|remedy| format!("- `{}`: {}. {}\n", remedy.name, remedy.change, remedy.cost))
        .collect();
    if meant.is_empty() {
        return meant;
    }
    format!(
        "## Remedies\n\nThe changes that `check --fix` and the webhook make, with their costs.\n\n{meant}\n"
    )
}

/// Explains how to suppress the rule for an object.
fn silence(code: &str) -> String {
    format!(
        "## To silence it\n\nAnnotate the object with `{}: \"{code}\"`, and give the reason in `{}`.\n",
        keys::IGNORE,
        keys::REASON
    )
}

/// A rule's documentation with its headings one level below `above`.
fn nested(rule: &Rule, above: &str) -> String {
    let mut code = false;
    rule.documentation()
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
        assert!(page == markdown(), "docs/rules.md is stale. Run `make rules`.");
    }

    #[test]
    fn comments_in_examples_are_no_headings() {
        let page = markdown();
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("## ")).collect();
        // The remedies have one more.
        assert_eq!(headings.len(), engine::rules::RULES.len() + 1);
        assert!(page.contains("\n  # no strategy: RollingUpdate, 25 %\n"));
        assert!(page.contains("\n### Fires on\n"));
    }
}
