//! Numbers that may be percentages, and how Kubernetes resolves them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::Text;

/// A count of pods, or a percentage of the replicas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// A number of pods.
    Count(i64),
    /// A percentage of the replicas.
    Percent(i64),
    /// Text that is no percentage; the API server rejects it.
    Invalid(Text),
}

/// The direction in which a percentage is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Up, as for `maxSurge`.
    Up,
    /// Down, as for `maxUnavailable`.
    Down,
}

impl Amount {
    /// The number of pods for `replicas`; `None` if the API server rejects the value.
    ///
    /// Source: `GetScaledValueFromIntOrPercent` in apimachinery's `intstr` package.
    pub(crate) fn resolve(&self, replicas: i64, rounding: Rounding) -> Option<i64> {
        match self {
            Self::Count(count) if *count >= 0 => Some(*count),
            Self::Percent(percent) if *percent >= 0 => {
                let scaled = percent.checked_mul(replicas.max(0))?;
                Some(match rounding {
                    Rounding::Up => scaled.checked_add(99)? / 100,
                    Rounding::Down => scaled / 100,
                })
            }
            Self::Count(_) | Self::Percent(_) | Self::Invalid(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;

        impl Visitor<'_> for Value {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a percentage such as \"25%\"")
            }

            fn visit_i64<E>(self, count: i64) -> Result<Amount, E> {
                Ok(Amount::Count(count))
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Amount, E> {
                i64::try_from(count)
                    .map(Amount::Count)
                    .map_err(|_| E::custom(format_args!("{count} pods are too many")))
            }

            fn visit_str<E>(self, text: &str) -> Result<Amount, E> {
                Ok(match text.strip_suffix('%').map(str::parse) {
                    Some(Ok(percent)) => Amount::Percent(percent),
                    _ => Amount::Invalid(text.into()),
                })
            }
        }

        deserializer.deserialize_any(Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        let cases = [
            (r#""25%""#, 1, Some(1), Some(0)),
            (r#""25%""#, 4, Some(1), Some(1)),
            (r#""25%""#, 5, Some(2), Some(1)),
            (r#""100%""#, 3, Some(3), Some(3)),
            (r#""0%""#, 3, Some(0), Some(0)),
            ("2", 1, Some(2), Some(2)),
            ("-1", 1, None, None),
            (r#""-5%""#, 1, None, None),
            (r#""many""#, 1, None, None),
            (r#""9223372036854775807%""#, 3, None, None),
        ];
        for (text, replicas, up, down) in cases {
            let amount: Amount = serde_json::from_str(text).unwrap();
            assert_eq!(amount.resolve(replicas, Rounding::Up), up, "{text} up");
            assert_eq!(amount.resolve(replicas, Rounding::Down), down, "{text} down");
        }
    }
}
