//! What writes the manifests into the cluster: suspended before anything is changed, and
//! resumed when they name the new claim.

use super::inputs::Inputs;
use super::step::{Action, RUNS, Step};
use crate::diagnosis::Delivery;

/// Keeps whoever writes the manifests from undoing what comes next.
pub(super) fn hold_back(inputs: &Inputs<'_>) -> Step {
    let consequence = if inputs.copies() {
        "it would start the application in the middle of the copy"
    } else {
        "it would bring the old claim back"
    };
    let mut actions = Vec::new();
    let mut text = String::new();
    for delivery in inputs.deliveries {
        if let Some([pause, _]) = delivery.pause() {
            actions.push(inputs.kubectl(&pause));
        } else {
            text += &format!(
                "Hold back upgrades of {} until this is done: one in between brings the old claim back. ",
                delivery.shown()
            );
        }
    }
    if inputs.deliveries.is_empty() {
        text += &format!(
            "Nothing on these objects says that Argo CD, Flux or Helm manages them. If one of them does, suspend it now: {consequence}."
        );
    } else if !actions.is_empty() {
        text += &format!(
            "Otherwise {consequence}. What is above it (an Application of Applications, a parent Kustomization) may resume it; suspend that too."
        );
    }
    text += &inputs.of_strangers(|it| {
        format!(
            " It is not known what writes the manifest of {it}: if something does, suspend that too."
        )
    });
    Step {
        title: "Suspend what writes the manifests".to_owned(),
        blocks: RUNS.to_owned(),
        text: text.trim().to_owned(),
        actions,
        then: String::new(),
    }
}

/// The same in the place where the manifests are.
pub(super) fn hand_over(inputs: &Inputs<'_>) -> Step {
    let actions = resume_actions(inputs);
    let shown: Vec<String> = inputs.deliveries.iter().map(Delivery::shown).collect();
    let by = if shown.is_empty() {
        "where the manifests are".to_owned()
    } else {
        format!("where {} takes the manifests from", shown.join(" and "))
    };
    let resume = if actions.is_empty() {
        "Then let the next delivery run."
    } else {
        "Only then resume:"
    };
    Step {
        title: "Write it into the manifests, and resume".to_owned(),
        blocks: RUNS.to_owned(),
        text: format!(
            "Add the new claim {by}, change claimName from {} to {} there, and commit both. Leave the old claim in: what is removed may be pruned, and the way back with it. {resume}",
            inputs.wanted.claim, inputs.name
        ),
        actions,
        then: format!(
            "After the first sync, the workloads must still name claim {}.",
            inputs.name
        ),
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
