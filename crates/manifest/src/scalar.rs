//! The meaning of an unquoted YAML word in Kubernetes.
//!
//! The API server and kubectl read manifests with `sigs.k8s.io/yaml`, which follows YAML 1.1: `yes`
//! and `on` are true, `0755` is 493, a date stays a string. The table in the tests was made with
//! `sigs.k8s.io/yaml` v1.6.0.

/// The meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true`, `yes`, `on`, `y` and their opposites.
    Bool(bool),
    /// An integer that fits in 64 bits with a sign.
    Signed(i64),
    /// An integer above `i64::MAX` that fits in 64 bits without a sign.
    Unsigned(u64),
    /// A decimal number, or an integer beyond 64 bits. It may be infinite or not a number, which
    /// JSON, and therefore Kubernetes, cannot hold.
    Float(f64),
    /// Anything else: a string.
    Text,
}

/// Resolves an untagged plain scalar.
pub fn resolve(plain: &str) -> Meaning {
    let Some(first) = plain.bytes().next() else {
        return Meaning::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(plain),
        b'.' => special_float(plain).or_else(|| float(plain)).map_or(Meaning::Text, Meaning::Float),
        b'+' | b'-' => special_float(plain).map_or_else(|| number(plain), Meaning::Float),
        b'0'..=b'9' => number(plain),
        _ => Meaning::Text,
    }
}

fn word(plain: &str) -> Meaning {
    match plain {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Meaning::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Meaning::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Meaning::Null,
        _ => Meaning::Text,
    }
}

fn special_float(plain: &str) -> Option<f64> {
    match plain {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn number(plain: &str) -> Meaning {
    let digits = plain.replace('_', "");
    integer(&digits).or_else(|| float(&digits).map(Meaning::Float)).unwrap_or(Meaning::Text)
}

fn integer(text: &str) -> Option<Meaning> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // `from_str_radix` accepts a sign of its own, which would let `+-1` pass.
    if !digits.bytes().next()?.is_ascii_hexdigit() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if text.starts_with('-') {
        0i64.checked_sub_unsigned(magnitude).map(Meaning::Signed)
    } else {
        Some(i64::try_from(magnitude).map_or(Meaning::Unsigned(magnitude), Meaning::Signed))
    }
}

/// Reads `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, as the standard library does. The
/// words `inf` and `nan`, which the library reads too, stay text, as does a number that is too large
/// for a 64-bit float.
fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|float: &f64| float.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{Meaning, resolve};

    #[test]
    fn plain_scalars_mean_what_sigs_k8s_io_yaml_gives() {
        use Meaning::{Bool, Float, Null, Signed, Text, Unsigned};
        let table = [
            ("0755", Signed(493)),
            ("+0755", Signed(493)),
            ("-010", Signed(-8)),
            ("00", Signed(0)),
            ("0", Signed(0)),
            ("-0", Signed(0)),
            ("0_", Signed(0)),
            ("0_7", Signed(7)),
            ("0o17", Signed(15)),
            ("0O17", Signed(15)),
            ("0o8", Text),
            ("0x1F", Signed(31)),
            ("0X1f", Signed(31)),
            ("+0x1F", Signed(31)),
            ("0x1_F", Signed(31)),
            ("-0x10", Signed(-16)),
            ("0x", Text),
            ("0xFFFFFFFFFFFFFFFFF", Text),
            ("0x8000000000000000", Unsigned(9_223_372_036_854_775_808)),
            ("0b101", Signed(5)),
            ("0B11", Signed(3)),
            ("-0b11", Signed(-3)),
            ("0b", Text),
            ("0888", Float(888.0)),
            ("08", Float(8.0)),
            ("+12", Signed(12)),
            ("+-1", Text),
            ("-", Text),
            ("1_000", Signed(1000)),
            ("1__0", Signed(10)),
            ("1_0.5", Float(10.5)),
            ("_1", Text),
            ("y", Bool(true)),
            ("yes", Bool(true)),
            ("Yes", Bool(true)),
            ("YES", Bool(true)),
            ("yEs", Text),
            ("on", Bool(true)),
            ("true", Bool(true)),
            ("tRue", Text),
            ("N", Bool(false)),
            ("Off", Bool(false)),
            ("", Null),
            ("~", Null),
            ("null", Null),
            ("Null", Null),
            ("nULL", Text),
            (".5", Float(0.5)),
            (".5e3", Float(500.0)),
            ("-.5", Float(-0.5)),
            (".5_0", Text),
            (".e5", Text),
            (".", Text),
            ("5.", Float(5.0)),
            ("1.e5", Float(1e5)),
            ("1.0", Float(1.0)),
            ("1e3", Float(1000.0)),
            ("1E+3", Float(1000.0)),
            ("1e", Text),
            ("1e400", Text),
            ("1.2.3", Text),
            ("+.inf", Float(f64::INFINITY)),
            ("12:30:45", Text),
            ("2020-01-01", Text),
            ("2020-01-01T10:00:00Z", Text),
            ("18446744073709551615", Unsigned(u64::MAX)),
            ("18446744073709551616", Float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", Signed(i64::MIN)),
            ("-9223372036854775809", Float(-9_223_372_036_854_775_809.0)),
            ("=", Text),
            ("<<", Text),
            ("ReadWriteOnce", Text),
            ("10Gi", Text),
            ("25%", Text),
        ];
        for (plain, meaning) in table {
            assert_eq!(resolve(plain), meaning, "{plain:?}");
        }
    }

    #[test]
    fn not_a_number_is_a_float() {
        assert!(matches!(resolve(".nan"), Meaning::Float(float) if float.is_nan()));
    }
}
