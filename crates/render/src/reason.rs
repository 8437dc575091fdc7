//! The reasons why a chart, kustomization or release is not rendered.

use std::path::Path;

use super::program::run::Failure;
use super::rendering::roots::RootKind;
use report::{Cause, NotJudged, command_with};

/// The reason why something is not rendered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reason {
    /// The end of a sentence.
    pub(super) text: String,
    pub(super) cause: Cause,
    /// The command that judges it, or that the user has to run first.
    pub(super) command: Option<String>,
}

impl Reason {
    /// A reason with this cause and without a command.
    pub(super) fn of(cause: Cause, text: &str) -> Self {
        Self { text: without_user(text), cause, command: None }
    }

    /// The reason is that something at the URL is needed, which is not fetched.
    pub(super) fn elsewhere(url: &str, text: &str) -> Self {
        let url = without_user(url);
        let rest = url.split_once("://").map_or(&*url, |(_, rest)| rest);
        let host = rest.split(['/', ':']).next().unwrap_or_default().to_owned();
        let command = Some("multi-attach-guard check --fetch".to_owned());
        Self { command, ..Self::of(Cause::Elsewhere(host), text) }
    }

    /// The same with the command for the chart or kustomization in the folder, if one helps.
    pub(super) fn in_folder(mut self, kind: RootKind, folder: &Path) -> Self {
        let folder = folder.to_string_lossy();
        let command = match (&self.cause, kind) {
            (Cause::Dependencies, _) => command_with("helm dependency build", &folder),
            (Cause::Files, RootKind::Chart) => piped(&command_with("helm template", &folder)),
            (Cause::Files, RootKind::Kustomization) => {
                piped(&command_with("kustomize build", &folder))
            }
            _ => return self,
        };
        self.command.get_or_insert(command);
        self
    }

    /// The report of the thing that is not rendered, a `what` with this path or name.
    pub(super) fn not_judged(self, what: &str, place: String) -> NotJudged {
        NotJudged { command: self.command, ..NotJudged::new(what, place, &self.text, self.cause) }
    }
}

impl<T: Into<String>> From<T> for Reason {
    fn from(text: T) -> Self {
        Self::of(Cause::Failed, &text.into())
    }
}

impl From<Failure> for Reason {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Fetches { .. } => Self::of(Cause::Files, &failure.to_string()),
            failure => failure.to_string().into(),
        }
    }
}

/// The command whose output `check` judges.
pub(super) fn piped(command: &str) -> String {
    format!("{command} | multi-attach-guard check -")
}

/// The text with the user removed from its URLs, because a password may follow the user.
pub(super) fn without_user(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(':') {
        let (scheme, after) = rest.split_at(at + 1);
        out.push_str(scheme);
        let url = after.trim_start_matches(SLASHES);
        let slashes = after.len() - url.len();
        out.push_str(&after[..slashes]);
        let is_url = slashes >= 2 || is_web(&scheme[..at]);
        rest = &url[if is_url { end_of_user(url) } else { 0 }..];
    }
    out + rest
}

/// The characters that may separate a scheme from a host.
const SLASHES: [char; 2] = ['/', '\\'];

/// Whether the scheme is http or https, after which a host follows with any number of slashes.
fn is_web(scheme: &str) -> bool {
    scheme
        .rsplit(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("http") || word.eq_ignore_ascii_case("https"))
}

/// The offset at which the host of a URL starts.
fn end_of_user(url: &str) -> usize {
    // The name of a user may contain an apostrophe.
    let ends = |c: char| c.is_whitespace() || SLASHES.contains(&c) || "?#\"<>".contains(c);
    let authority = &url[..url.find(ends).unwrap_or(url.len())];
    let behind = |at: usize| at + 1;
    if let Some(at) = authority.rfind('@') {
        return behind(at);
    }
    // If the text after the colon is not a port, it is the start of a password that contains one of
    // the characters in `ends`. A message may continue with an apostrophe, a colon or a comma.
    let has_password =
        authority.trim_end_matches([':', ',', '.', ')', '\'']).split_once(':').is_some_and(
            |(_, port)| !authority.starts_with('[') && port.contains(|c: char| !c.is_ascii_digit()),
        );
    if has_password {
        return url.rfind('@').map_or(authority.len(), behind);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::{Cause, Reason, without_user};

    #[test]
    fn no_user_of_a_url_is_named() {
        for (text, shown) in [
            ("a", "a"),
            ("https://u:hunter2@a.example/b@v1", "https://a.example/b@v1"),
            ("Get \"https://u:h@nter2@a.example\": x@y", "Get \"https://a.example\": x@y"),
            (
                "ssh://git@a.example/b and oci://u:p@c.example",
                "ssh://a.example/b and oci://c.example",
            ),
            ("https://a.example?u=b@c", "https://a.example?u=b@c"),
            ("https://a.example/b@c", "https://a.example/b@c"),
            ("https://a.example:80/b@c", "https://a.example:80/b@c"),
            ("\"https://[::1]:80\", a@b", "\"https://[::1]:80\", a@b"),
            ("https://a.example:80: refused, a@b", "https://a.example:80: refused, a@b"),
            ("https://u:hun/ter2@a.example/b", "https://a.example/b"),
            ("https://u:hun#t?er2@a.example", "https://a.example"),
            ("\"https://u:hun\"ter2@a.example\"", "\"https://a.example\""),
            ("https://u:hun ter2@a.example", "https://a.example"),
            ("https://u'x:hunter2@a.example", "https://a.example"),
            ("https://u'x:hun/ter2@a.example", "https://a.example"),
            ("'https://u:hun'ter2@a.example'", "'https://a.example'"),
            ("'https://a.example': no, a@b", "'https://a.example': no, a@b"),
            ("'https://a.example:80': refused, a@b", "'https://a.example:80': refused, a@b"),
            ("https://u:hunter2", "https://"),
            ("HTTPS:/u:hunter2@a.example", "HTTPS:/a.example"),
            ("at https:u:hunter2@a.example", "at https:a.example"),
            ("https:\\\\u:hunter2@a.example", "https:\\\\a.example"),
            ("no http: a@b", "no http: a@b"),
            ("://@", "://"),
        ] {
            assert_eq!(without_user(text), shown);
            assert_eq!(Reason::from(text).text, shown);
            assert_eq!(Reason::of(Cause::Files, text).text, shown);
            assert_eq!(Reason::elsewhere(text, text).text, shown);
        }
    }
}
