//! Quantities, in the notation of Kubernetes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// A size in bytes, rounded up. Invalid text reads as 0, as the API server rejects it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(pub u128);

impl Quantity {
    /// Reads `10Gi`, `1.5T`, `1e9`, `500m` and the like (Kubernetes API, "Quantity").
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits);
        let scale = match suffix {
            "" => 1.0,
            "n" => 1e-9,
            "u" => 1e-6,
            "m" => 1e-3,
            "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            "P" => 1e15,
            "E" => 1e18,
            "Ki" => 1024_f64,
            "Mi" => 1024_f64.powi(2),
            "Gi" => 1024_f64.powi(3),
            "Ti" => 1024_f64.powi(4),
            "Pi" => 1024_f64.powi(5),
            "Ei" => 1024_f64.powi(6),
            exponent => 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
        };
        let bytes = (number.parse::<f64>().ok()? * scale).ceil();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "sizes of real disks are far below 2^53, where a float is still exact"
        )]
        (bytes.is_finite() && bytes >= 0.0).then_some(Self(bytes as u128))
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;

        impl Visitor<'_> for Size {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"10Gi\"")
            }

            fn visit_str<E>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity::parse(text).unwrap_or_default())
            }

            fn visit_u64<E>(self, bytes: u64) -> Result<Quantity, E> {
                Ok(Quantity(u128::from(bytes)))
            }

            fn visit_i64<E>(self, bytes: i64) -> Result<Quantity, E> {
                Ok(Quantity(u128::try_from(bytes).unwrap_or_default()))
            }

            fn visit_f64<E>(self, bytes: f64) -> Result<Quantity, E> {
                Ok(Quantity::parse(&bytes.to_string()).unwrap_or_default())
            }
        }

        deserializer.deserialize_any(Size)
    }
}

/// Written in bytes.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_bytes() {
        let cases = [
            ("10Gi", Some(10 * 1024 * 1024 * 1024)),
            ("1.5G", Some(1_500_000_000)),
            ("1e3", Some(1000)),
            ("500m", Some(1)),
            ("7", Some(7)),
            ("7E", Some(7_000_000_000_000_000_000)),
            ("", None),
            ("big", None),
            ("1Zi", None),
            ("1e999", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(Quantity::parse(text).map(|q| q.0), bytes, "{text}");
        }
    }
}
