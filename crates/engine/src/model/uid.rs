//! The identity of an object: another object with the same name has another uid.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::Text;

/// An object's uid: a UUID as the API server generates them, or the digest of any other text,
/// because only equality counts. An empty text is an unknown uid, which is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "Text")]
pub struct Uid(u128);

impl Uid {
    /// Whether both are known and differ.
    pub fn contradicts(self, other: Self) -> bool {
        let unknown = Self::default();
        self != other && self != unknown && other != unknown
    }
}

impl From<Text> for Uid {
    fn from(text: Text) -> Self {
        const DIGITS: usize = 32;
        const HYPHENS: usize = 4;
        if text.is_empty() {
            return Self::default();
        }
        let digits = text.replace('-', "");
        let is_uuid =
            text.len() == DIGITS + HYPHENS && digits.len() == DIGITS && !digits.starts_with('+');
        let number = u128::from_str_radix(&digits, 16).ok();
        Self(number.filter(|_| is_uuid).unwrap_or_else(|| digest(&text)))
    }
}

/// FNV-1a.
fn digest(text: &str) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(BASIS, |digest, byte| (digest ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// `0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11`, or nothing if it is unknown.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        let digits = format!("{:032x}", self.0);
        let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
        write!(f, "{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
        for text in ["web", "0b6d9a4e", "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d1100"] {
            assert!(one.contradicts(uid(text)), "{text}");
            assert!(!uid(text).contradicts(uid(text)), "{text}");
        }
        assert!(!one.contradicts(uid("")));
    }
}
