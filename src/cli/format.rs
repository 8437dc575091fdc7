//! The formats of a report as values of `--format`.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::report::Format;

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, purpose) = self.documented();
        Some(PossibleValue::new(name).help(purpose))
    }
}
