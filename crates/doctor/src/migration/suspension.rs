//! What writes the manifests into the cluster: suspended before anything is changed, and
//! resumed when they name the new claim.

use super::inputs::Inputs;
use super::step::{Action, Step};
use crate::diagnosis::Delivery;

/// Keeps whoever writes the manifests from undoing what comes next.
pub(super) fn hold_back(inputs: &Inputs<'_>) -> Step {
    let consequence = match inputs.copies() {
        true => inputs.words("suspend.starts", &[]),
        false => inputs.words("suspend.undoes", &[]),
    };
    let consequence = [("consequence", consequence.as_str())];
    let mut actions = Vec::new();
    let mut text = Vec::new();
    for delivery in inputs.deliveries {
        match delivery.pause() {
            Some([pause, _]) => actions.push(inputs.kubectl(&pause)),
            None => text.push(inputs.words("suspend.helm", &[("delivery", &delivery.shown())])),
        }
    }
    if inputs.deliveries.is_empty() {
        text.push(inputs.words("suspend.unknown", &consequence));
    } else if !actions.is_empty() {
        text.push(inputs.words("suspend.why", &consequence));
    }
    text.extend(inputs.of_strangers("suspend.stranger"));
    Step {
        text: text.join(" "),
        ..inputs.step("suspend", actions)
    }
}

/// The same in the place where the manifests are.
pub(super) fn hand_over(inputs: &Inputs<'_>) -> Step {
    let actions = resume_actions(inputs);
    let shown: Vec<String> = inputs.deliveries.iter().map(Delivery::shown).collect();
    let by = match shown.is_empty() {
        true => inputs.words("resume.by-hand", &[]),
        false => inputs.words("resume.by", &[("deliveries", &shown.join(" and "))]),
    };
    let resume = match actions.is_empty() {
        true => inputs.words("resume.next", &[]),
        false => inputs.words("resume.now", &[]),
    };
    Step {
        text: inputs.words("resume.text", &[("by", &by), ("resume", &resume)]),
        ..inputs.step("resume", actions)
    }
}

/// Sets whoever writes the manifests to work again.
pub(super) fn resume_actions(inputs: &Inputs<'_>) -> Vec<Action> {
    let deliveries = inputs.deliveries.iter();
    deliveries
        .filter_map(Delivery::pause)
        .map(|[_, resume]| inputs.kubectl(&resume))
        .collect()
}
