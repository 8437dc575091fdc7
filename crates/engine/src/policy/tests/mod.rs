mod cases;
mod documents;

use super::Policy;

fn policy(text: &str) -> Policy {
    Policy::parse(text, "policy.yaml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}
