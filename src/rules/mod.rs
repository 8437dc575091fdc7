//! The rules: what can go wrong with a volume, one file a rule.

pub mod codes;
pub mod outcome;

pub use outcome::Outcome;
