#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use multi_attach_guard_fuzz::{mutate, targets};

fuzz_target!(|bytes: &[u8]| targets::review_reader::run(bytes));

// Parsing an input costs more than running it, so only few inputs are mutated as JSON.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 16 == 0 {
        mutate::json(data, size, max_size, seed)
    } else {
        fuzzer_mutate(data, size, max_size)
    }
});
