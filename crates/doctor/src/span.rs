//! A duration in words.

/// A duration in words: `45 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. A negative number of seconds
/// counts as 0.
pub fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (size, name, rest, rest_name) = match seconds {
        0..60 => return format!("{seconds} s"),
        60..3600 => (60, "min", 1, "s"),
        3600..86400 => (3600, "h", 60, "min"),
        _ => (86400, "d", 3600, "h"),
    };
    match seconds % size / rest {
        0 => format!("{} {name}", seconds / size),
        more => format!("{} {name} {more} {rest_name}", seconds / size),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn it_has_the_two_largest_units() {
        let cases = [
            (-5, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (200, "3 min 20 s"),
            (7500, "2 h 5 min"),
            (86400 + 3600, "1 d 1 h"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(span(seconds), expected);
        }
    }
}
