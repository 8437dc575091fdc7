//! Enums whose values are words in manifests, policies and reports, lists of words, and texts that
//! are cut.

use std::borrow::Borrow;

/// Declares an enum with the word of each variant.
#[macro_export]
macro_rules! words {
    (
        $(#[$attribute:meta])*
        $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        $(#[$attribute])*
        pub enum $name {
            $($(#[$of_variant])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The variant of that word.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|word| word.name() == name)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.name()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use words;

/// `a, b and c`, with `and` as the joint.
pub fn listed(words: &[impl Borrow<str>], joint: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.borrow().to_owned(),
        [init @ .., last] => format!("{} {joint} {}", init.join(", "), last.borrow()),
    }
}

/// The most items that [`some`] names; it counts the rest.
const NAMED: usize = 3;

/// `a, b, c and 2 more`.
pub fn some(mut items: Vec<String>) -> String {
    if items.len() > NAMED {
        let more = items.split_off(NAMED).len();
        items.push(format!("{more} more"));
    }
    listed(&items, "and")
}

/// The likeness of a word of a short list and of what was meant to be it: it allows a slip or two
/// in a short word and excludes unrelated words.
pub const OF_FEW: f64 = 0.7;

/// The known word that `written` was most likely meant to be, without regard to case. Their likeness
/// is more than `least`.
pub fn nearest<'k>(
    written: &str,
    known: impl IntoIterator<Item = &'k str>,
    least: f64,
) -> Option<&'k str> {
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(&written, &word.to_lowercase()), word))
        .filter(|(likeness, _)| *likeness > least)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// The text, or its beginning and a sign that there is more.
pub fn cut(text: &str, length: usize) -> String {
    if text.chars().nth(length).is_none() {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(length.saturating_sub(1)).collect();
    format!("{beginning}…")
}
