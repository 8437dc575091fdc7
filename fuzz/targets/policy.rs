//! The bytes of a policy file, and a judgement by that policy.

use engine::policy::Policy;
use engine::storage::Catalog;
use engine::verdict::EffectivePolicy;
use webhook::admission::Endpoint;

use super::review;

/// A policy is refused with its place in the file, or it answers a review.
pub fn run(bytes: &[u8]) {
    let policy = match Policy::parse(bytes, "policy.yaml") {
        Ok(policy) => policy,
        Err(error) => {
            let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
            assert!((1..=lines).contains(&error.line), "{error}");
            assert!(error.column >= 1, "{error}");
            assert!(!error.problem.to_string().is_empty(), "{error}");
            return;
        }
    };
    let catalog = Catalog::embedded().expect("the catalog can be read");
    let effective = EffectivePolicy::new(policy, catalog);
    let review = review::at_fault().to_string();
    for endpoint in Endpoint::ALL {
        let answer = review::answered(review.as_bytes(), endpoint, &effective);
        assert!(answer.is_some(), "the review is answered");
    }
}
