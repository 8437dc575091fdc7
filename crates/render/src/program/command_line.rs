//! Command lines of external programs, which are created only here.
//!
//! Options are constants of this program. Text from a manifest is a [`Word`]: the external program
//! accepts it, or no program starts. It follows the `=` of an option, or the end of all options.

use std::ffi::OsString;
use std::path::Path;

use engine::model::words::cut;

/// The most characters that are shown of a refused word, including the `…` for the rest.
const SHOWN: usize = 81;

/// The most bytes of a word. Linux accepts 128 KiB.
const LONGEST: usize = 100 << 10;

macro_rules! fields {
    ($($(#[$says:meta])* $field:ident: $name:literal of $program:literal if $takes:expr;)*) => {
        /// A field of a manifest that is passed to a program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Field {
            $($(#[$says])* $field),*
        }

        impl Field {
            #[cfg(test)]
            const ALL: &'static [Self] = &[$(Self::$field),*];

            /// Its name, the program that gets it, and the check of that program.
            const fn row(self) -> (&'static str, &'static str, fn(&str) -> bool) {
                match self {
                    $(Self::$field => ($name, $program, $takes)),*
                }
            }
        }
    };
}

fields! {
    /// The name of a release.
    ReleaseName: "release name" of "helm" if |name| is_subdomain(name) && name.len() <= 53;
    /// The namespace of a release.
    Namespace: "namespace" of "Kubernetes" if |name| is_label(name) && name.len() <= 63;
    /// `name=value`, a single value of a chart.
    Setting: "value" of "helm" if is_setting;
    /// The version of Kubernetes for which a chart is rendered.
    KubeVersion: "kubeVersion" of "helm" if |version| is_made_of(version, "+-.") && is_version(version);
    /// A version of an API that a chart may use.
    ApiVersion: "version of an API" of "helm" if |version| is_made_of(version, "-./");
    /// The URL of a Git repository.
    GitUrl: "URL" of "git" if is_git_url;
    /// A commit, a tag or a branch.
    GitReference: "reference" of "git" if is_reference;
}

/// A word of a manifest that a program accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word(String);

impl Word {
    /// Checks the text.
    ///
    /// # Errors
    /// The program does not accept it: the end of a sentence.
    pub(crate) fn new(field: Field, text: &str) -> Result<Self, String> {
        let (name, program, takes) = field.row();
        if takes(text) && text.len() <= LONGEST {
            return Ok(Self(text.to_owned()));
        }
        let text = cut(text, SHOWN);
        Err(format!("its {name} {text:?} is not one that {program} takes"))
    }
}

/// An argument on a command line other than a constant option. It is made only from the three types
/// below.
pub(crate) struct Argument(OsString);

/// A path that this program created.
impl From<&Path> for Argument {
    fn from(path: &Path) -> Self {
        Self(path.into())
    }
}

/// A number that this program chose.
impl From<u64> for Argument {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

/// A word that the program accepts.
impl From<&Word> for Argument {
    fn from(Word(text): &Word) -> Self {
        Self(text.into())
    }
}

/// The arguments with which a program is started.
#[derive(Clone, Debug)]
pub(crate) struct CommandLine {
    /// The command and the options, then the words after them.
    options: Vec<OsString>,
    words: Vec<OsString>,
    /// The argument that ends the options.
    end: &'static str,
}

impl CommandLine {
    /// The command line of a program that ends its options with `--`.
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            options: command.split(' ').map(OsString::from).collect(),
            words: Vec::new(),
            end: "--",
        }
    }

    /// The command line of git.
    pub(crate) fn git(command: &'static str) -> Self {
        Self { end: "--end-of-options", ..Self::new(command) }
    }

    /// Adds an option without a value.
    pub(crate) fn flag(&mut self, name: &'static str) {
        self.options.push(name.into());
    }

    /// Adds an option and its value.
    pub(crate) fn option(&mut self, name: &'static str, value: impl Into<Argument>) {
        let mut option = OsString::from(name);
        option.push("=");
        option.push(value.into().0);
        self.options.push(option);
    }

    /// Adds a word after all options.
    pub(crate) fn word(mut self, word: impl Into<Argument>) -> Self {
        self.words.push(word.into().0);
        self
    }

    /// All arguments in order.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = OsString> {
        let end = (!self.words.is_empty()).then(|| self.end.into());
        self.options.iter().cloned().chain(end).chain(self.words.iter().cloned())
    }
}

/// Whether the text is a DNS label, of any length.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    let bytes = text.as_bytes();
    bytes.iter().copied().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
}

/// Whether the text is DNS labels with dots between them.
fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Whether the text has only letters, digits and `others`, and does not start with one of `others`.
fn is_made_of(text: &str, others: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_plain) && text.chars().all(|c| is_plain(c) || others.contains(c))
}

fn is_version(text: &str) -> bool {
    text.strip_prefix('v').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

fn is_setting(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && !name.contains(char::is_control))
        && !text.contains('\0')
}

/// Whether the text is a URL with a scheme, and without characters that separate words. Neither the
/// user nor the host may be an option of `ssh`.
fn is_git_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let (user, host) = rest.split_once('@').unwrap_or(("", rest));
    is_made_of(scheme, "+")
        && !rest.is_empty()
        && !user.starts_with('-')
        && !host.starts_with('-')
        && !text.contains(|c: char| c.is_control() || c.is_whitespace())
}

/// Whether the text follows the rules of `git check-ref-format`.
fn is_reference(text: &str) -> bool {
    let is_wrong = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\+".contains(c);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !text.starts_with('-')
        && !text.contains(is_wrong)
        && !text.contains("..")
        && !text.contains("@{")
        && !text.ends_with('.')
        && text != "@"
        && text.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{CommandLine, Field, Word};

    /// A command line, a function that adds a word to it, and words that the program accepts.
    type Row = (CommandLine, fn(CommandLine, &Word) -> CommandLine, &'static [&'static str]);

    /// The place of the field's word on a command line, and words that the program accepts.
    fn row(field: Field) -> Row {
        fn last(line: CommandLine, word: &Word) -> CommandLine {
            line.word(word)
        }
        fn namespace(mut line: CommandLine, word: &Word) -> CommandLine {
            line.option("--namespace", word);
            line
        }
        fn set(mut line: CommandLine, word: &Word) -> CommandLine {
            line.option("--set", word);
            line
        }
        fn kube_version(mut line: CommandLine, word: &Word) -> CommandLine {
            line.option("--kube-version", word);
            line
        }
        fn api_version(mut line: CommandLine, word: &Word) -> CommandLine {
            line.option("--api-versions", word);
            line
        }
        let helm = CommandLine::new("template");
        let git = CommandLine::git("fetch --quiet");
        match field {
            Field::ReleaseName => (helm, last, &["a", "shop-2.blue", NAME_OF_53]),
            Field::Namespace => (helm, namespace, &["a", "prod-1", NAME_OF_63]),
            Field::Setting => {
                (helm, set, &["a=", "a.b[0]=-1", "a=--post-renderer=sh", "ingress\\.class=a\nb"])
            }
            Field::KubeVersion => (helm, kube_version, &["1", "v1.37.2", "1.30.0+k3s1"]),
            Field::ApiVersion => (helm, api_version, &["v1", "monitoring.coreos.com/v1/Probe"]),
            Field::GitUrl => (
                git,
                last,
                &[
                    "https://example.com/a.git",
                    "ssh://git@example.com/a",
                    "file:///srv/a",
                    "git+ssh://example.com/a",
                ],
            ),
            Field::GitReference => {
                (git, last, &["HEAD", "v1.2.3", "refs/tags/a", "feature/a", "0123456789abcdef"])
            }
        }
    }

    const NAME_OF_53: &str = "a2345678901234567890123456789012345678901234567890123";
    const NAME_OF_63: &str = "a23456789012345678901234567890123456789012345678901234567890123";

    /// More than 200 words that an attacker might write in the place of a name.
    fn hostile() -> Vec<String> {
        let options = [
            "--post-renderer=sh",
            "--post-renderer",
            "--set-file=x=/etc/hostname",
            "--output-dir=/tmp",
            "--values=http://example.com/a",
            "--values=/etc/hostname",
            "--kubeconfig=/root/.kube/config",
            "--plugin=sh",
            "--upload-pack=touch /tmp/ran",
            "--exec=sh",
            "-oProxyCommand=sh",
            "-f/etc/hostname",
            "-f",
            "-",
            "--",
            "---",
            "-c core.sshCommand=sh",
            "--helm-command=sh",
            "--enable-exec",
            "--repository-config=/etc/hostname",
            "$(sh)",
            "`sh`",
            ";sh",
            "|sh",
            "&sh",
            "../../etc",
            "/etc/hostname",
            "@",
            "@{-1}",
            "ext::sh -c touch% /tmp/ran",
            "ssh://-oProxyCommand=sh/a",
            "https://-a@example.com/b",
        ];
        let around = [
            "{}",
            " {}",
            "{} ",
            "\t{}",
            "\n{}",
            "a\n{}",
            "\0{}",
            "a\0{}",
            "\u{200b}{}",
            "\u{2212}{}",
        ];
        let mut words: Vec<String> = options
            .iter()
            .flat_map(|option| around.map(|pattern| pattern.replace("{}", option)))
            .collect();
        let alone = ["", " ", "\n", ".", "..", "A", "a b", "a.", ".a", "a-", "-a", "ä", "a_b"];
        words.extend(alone.map(str::to_owned));
        words.extend([54, 64, 200_000].map(|length| "a".repeat(length)));
        words
    }

    #[test]
    fn no_word_is_an_option_whatever_its_field() {
        let hostile = hostile();
        assert!(hostile.len() > 200);
        for &field in Field::ALL {
            let (line, put, good) = row(field);
            let options: Vec<_> = line.arguments().collect();
            for text in good {
                let word =
                    Word::new(field, text).unwrap_or_else(|error| panic!("{field:?}: {error}"));
                assert!(put(line.clone(), &word).arguments().count() > options.len());
            }
            let mut refused = 0;
            for text in &hostile {
                let Ok(word) = Word::new(field, text) else {
                    refused += 1;
                    continue;
                };
                let arguments: Vec<_> = put(line.clone(), &word).arguments().collect();
                let Some((added, _)) =
                    arguments.split_last().filter(|(_, before)| before.len() >= options.len())
                else {
                    panic!("{field:?} {text:?}: {arguments:?}");
                };
                let added = added.to_string_lossy();
                let is_value = added.ends_with(&format!("={text}"));
                let is_last = arguments.len() == options.len() + 2 && added == *text;
                assert!(is_value || is_last, "{field:?} {text:?}: {arguments:?}");
                assert!(!(is_last && text.starts_with('-')), "{field:?} {text:?}");
                assert!(!text.contains('\0') && text.len() < 128 << 10, "{field:?} {text:?}");
            }
            // A setting may be anything that has a name.
            let least = if field == Field::Setting { 100 } else { 250 };
            assert!(refused > least, "{field:?}: {refused}");
        }
    }

    #[test]
    fn options_come_first_and_words_behind_their_end() {
        let name = Word::new(Field::ReleaseName, "shop").unwrap();
        let mut line = CommandLine::new("show values").word(&name).word(Path::new("/a/--b"));
        line.flag("--debug");
        line.option("--namespace", &name);
        let expected = ["show", "values", "--debug", "--namespace=shop", "--", "shop", "/a/--b"];
        assert_eq!(line.arguments().collect::<Vec<_>>(), expected);
        let git = CommandLine::git("fetch").word(&name);
        let expected_of_git = ["fetch", "--end-of-options", "shop"];
        assert_eq!(git.arguments().collect::<Vec<_>>(), expected_of_git);
    }

    #[test]
    fn what_is_refused_is_named_in_short() {
        let refused = Word::new(Field::ReleaseName, "--post-renderer=sh").unwrap_err();
        assert_eq!(refused, "its release name \"--post-renderer=sh\" is not one that helm takes");
        let long = Word::new(Field::Namespace, &"a".repeat(1000)).unwrap_err();
        assert!(long.len() < 200);
        let control = Word::new(Field::Namespace, "a\n\u{1b}[2J").unwrap_err();
        assert!(!control.contains(char::is_control));
    }
}
