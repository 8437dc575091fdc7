//! The charts, releases and files that could have had findings and were not judged.

use serde::Serialize;

use doctor::diagnosis::command::line;

/// Something that could have had findings and was not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotJudged {
    /// `chart`, `kustomization`, `file` and others, or a kind such as `HelmRelease`.
    pub what: String,
    /// Its folder or file as the user named it, or its name.
    #[serde(rename = "where")]
    pub place: String,
    /// The reason: the end of a sentence.
    #[serde(rename = "why")]
    pub reason: String,
    /// The command that judges it, or that the user has to run first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The kind of reason.
    #[serde(skip)]
    pub cause: Cause,
}

impl NotJudged {
    /// A `what` at this place, with the reason and without a command.
    pub fn new(what: &str, place: String, reason: &str, cause: Cause) -> Self {
        Self { what: what.to_owned(), place, reason: reason.to_owned(), command: None, cause }
    }

    /// A template in this file.
    pub fn template(file: String) -> Self {
        let reason =
            "it must be filled in first; pipe the result into `multi-attach-guard check -`";
        Self::new("template", file, reason, Cause::Template)
    }

    /// The same with a command that ends with its place.
    #[must_use]
    pub fn with_command(self, program: &str) -> Self {
        let command = Some(command_with(program, &self.place));
        Self { command, ..self }
    }

    /// Its kind and its place, as `chart charts/web`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.what, self.place)
    }
}

/// The command `program` with a path, quoted for a shell.
pub fn command_with(program: &str, path: &str) -> String {
    // A path must not be read as an option.
    let dot = if path.starts_with('-') { "./" } else { "" };
    line(program, &[format!("{dot}{path}")])
}

/// The kind of reason for which something was not judged, in the order in which they are reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The program that renders it is not on the PATH.
    NoProgram(&'static str),
    /// Its folder lacks charts that it depends on.
    Dependencies,
    /// It needs charts or bases of this host, which `--fetch` downloads.
    Elsewhere(String),
    /// It needs files of a URL, which are never downloaded.
    Files,
    /// Only another program renders its format. The object itself is not at fault, so this is never
    /// an error.
    Foreign,
    /// Rendering it failed.
    Failed,
    /// The user does not want it rendered.
    NotWanted,
    /// It is a template.
    Template,
    /// It is a link that was not followed.
    Link,
    /// It is hidden.
    Hidden,
    /// Its files are in a folder that a release delivers, but not in its output.
    Unlisted,
    /// Its objects are in patches or components, but in no output.
    Unused,
}

impl Cause {
    /// Whether it was to be rendered.
    pub(super) const fn is_of_rendering(&self) -> bool {
        !matches!(self, Self::Template | Self::Link | Self::Hidden | Self::Unlisted | Self::Unused)
    }

    /// The cause in a few words; for a cause with a host, `hosts` is the number of hosts.
    pub(super) fn brief(&self, hosts: &str) -> String {
        let brief = match self {
            Self::NoProgram(program) => return format!("no {program} on the PATH"),
            Self::Elsewhere(_) => return format!("charts or bases from {hosts}"),
            Self::Dependencies => "missing dependencies",
            Self::Files => "files of a URL",
            Self::Foreign => "rendered only by other programs",
            Self::Failed => "rendering failed",
            Self::NotWanted => "not rendered",
            Self::Template => "not filled in",
            Self::Link => "not followed",
            Self::Hidden => "skipped",
            Self::Unlisted => "in no kustomization",
            Self::Unused => "in an unused patch or component",
        };
        brief.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::command_with;

    #[test]
    fn a_path_stays_one_argument() {
        for (path, expected) in [
            ("charts/web", "helm dependency build charts/web"),
            ("my charts", "helm dependency build 'my charts'"),
            ("-x; rm", "helm dependency build './-x; rm'"),
        ] {
            assert_eq!(command_with("helm dependency build", path), expected);
        }
    }
}
