#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use multi_attach_guard_fuzz::{mutate, targets};

fuzz_target!(|bytes: &[u8]| targets::differential::run(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::json(data, size, max_size, seed)
});
