//! Plans for another claim, in Markdown: as they are read in a terminal, a ticket or a file.

use std::io::{self, Write};

use super::safe;
use doctor::migration::{Action, MigrationPlan, Step};

/// The width of the reader's window, in characters.
const WIDTH: usize = 100;

/// From where objects are applied.
#[derive(Clone, Copy, Debug)]
pub enum Objects<'a> {
    /// They stand in the commands.
    Inline,
    /// From their files, which are in this directory; empty: the reader's own.
    Files(&'a str),
}

/// Why a plan was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// An object that cannot be put as YAML.
    #[error("An object could not be put as YAML: {0}. Please report this.")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// Nobody takes it.
    #[error("The plan could not be written: {0}.")]
    Write(#[from] io::Error),
}

/// Writes `plan`, safe to print.
///
/// # Errors
/// Whatever writing to `out` says.
pub fn write(
    plan: &MigrationPlan,
    objects: Objects<'_>,
    out: &mut dyn Write,
) -> Result<(), MigrationError> {
    writeln!(out, "# {}\n", safe::line(&plan.title))?;
    for fact in &plan.facts {
        wrapped(out, "- ", &format!("{}: {}", fact.name, fact.value))?;
    }
    for (title, sentences) in [
        ("To decide first", &plan.decide),
        ("What does not come along", &plan.lost),
        ("Not seen", &plan.open),
    ] {
        if !sentences.is_empty() {
            writeln!(out, "\n## {title}\n")?;
        }
        for sentence in sentences {
            wrapped(out, "- ", sentence)?;
        }
    }
    for (number, step) in (1..).zip(&plan.steps) {
        writeln!(out, "\n## {number}. {}\n", safe::line(&step.title))?;
        self::step(plan, step, objects, out)?;
    }
    writeln!(out, "\n## {}\n", safe::line(&plan.back.title))?;
    step(plan, &plan.back, objects, out)
}

fn step(
    plan: &MigrationPlan,
    step: &Step,
    objects: Objects<'_>,
    out: &mut dyn Write,
) -> Result<(), MigrationError> {
    wrapped(out, "", &format!("*{}* {}", step.blocks, step.text))?;
    if !step.actions.is_empty() {
        writeln!(out, "\n```sh")?;
        for action in &step.actions {
            match (action, objects) {
                (Action::Run(command), _) => writeln!(out, "{}", safe::lines(command))?,
                (Action::Apply(manifest), Objects::Inline) => {
                    let text = serde_saphyr::to_string(&manifest.object)?;
                    let text = safe::yaml(text, &manifest.object);
                    writeln!(out, "{} apply -f - <<'YAML'\n{text}YAML", plan.kubectl)?;
                }
                (Action::Apply(manifest), Objects::Files(directory)) => {
                    let path = std::path::Path::new(directory).join(&manifest.file);
                    let path = path.display().to_string();
                    let arguments = ["apply", "-f", &path];
                    let command = doctor::diagnosis::command::line(&plan.kubectl, &arguments);
                    writeln!(out, "{}", safe::line(&command))?;
                }
            }
        }
        writeln!(out, "```")?;
    }
    if !step.then.is_empty() {
        writeln!(out)?;
        wrapped(out, "", &step.then)?;
    }
    Ok(())
}

/// The text in lines of at most [`WIDTH`] characters, where its words let it; what follows
/// the first line stands as far to the right as what follows `mark`.
fn wrapped(out: &mut dyn Write, mark: &str, text: &str) -> io::Result<()> {
    let indent = " ".repeat(mark.len());
    let mut line = mark.to_owned();
    let mut is_empty = true;
    for word in safe::line(text).split_whitespace() {
        if !is_empty && line.chars().count() + word.chars().count() > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line.clone_from(&indent);
        }
        line += word;
        line.push(' ');
        is_empty = false;
    }
    writeln!(out, "{}", line.trim_end())
}

#[cfg(test)]
mod tests;
