//! The identity of an object, which outlives no deletion.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// An object's uid, a UUID as the API server makes them; any other text counts as
/// unknown.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Uid([u8; Self::BYTES]);

impl Uid {
    const BYTES: usize = 16;

    /// Whether both are known, and of two objects.
    #[must_use]
    pub(crate) fn contradicts(self, other: Self) -> bool {
        let unknown = Self::default();
        self != other && self != unknown && other != unknown
    }

    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; Self::BYTES];
        let mut digits = text.bytes().filter(|byte| *byte != b'-');
        let mut digit = || char::from(digits.next()?).to_digit(16);
        for byte in &mut bytes {
            *byte = u8::try_from(digit()? << 4 | digit()?).ok()?;
        }
        digit().is_none().then_some(Self(bytes))
    }
}

/// `0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11`, or nothing where it is unknown.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) {
                "-"
            } else {
                ""
            };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Uid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a uid")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Uid, E> {
                Ok(Uid::parse(text).unwrap_or_default())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(text: &str) -> Uid {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn uids_are_written_as_they_were_read() {
        let text = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";
        assert_eq!(uid(text).to_string(), text);
        assert_eq!(uid(&text.to_uppercase()), uid(text));
    }

    #[test]
    fn only_two_uids_that_are_known_contradict_each_other() {
        let one = uid("0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11");
        let other = uid("0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d12");
        assert!(one.contradicts(other));
        assert!(!one.contradicts(one));
        for unknown in [
            "",
            "web",
            "0b6d9a4e",
            "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d1100",
        ] {
            assert!(!one.contradicts(uid(unknown)), "{unknown}");
        }
    }
}
