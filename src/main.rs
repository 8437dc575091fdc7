//! The command line of multi-attach-guard.

fn main() {}
