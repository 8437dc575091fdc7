//! Formats as values of `--format`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser for `all` formats by the names under which they are documented.
pub(super) fn values<F: Copy + Send + Sync + 'static>(
    all: &'static [F],
    documented: fn(F) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = F> {
    let values = all.iter().map(|format| {
        let (name, purpose) = documented(*format);
        PossibleValue::new(name).help(purpose)
    });
    PossibleValuesParser::new(values.collect::<Vec<_>>()).try_map(move |name| {
        all.iter().copied().find(|format| documented(*format).0 == name).ok_or("no such format")
    })
}
