//! No other cause applies: the message of Kubernetes is passed on unchanged.

use serde_json::json;

use super::Judgement;
use crate::messages::{Statement, quotable};
use crate::waiting_pod::WaitingPod;
use engine::model::claim::ClaimPhase;

pub(super) fn judge(waiting: &WaitingPod<'_>) -> Option<Judgement> {
    let words = waiting.words();
    let claim = waiting.found_claim();
    let more = json!({
        "has-no-volume": waiting.has_no_volume(),
        "bound": claim.is_some_and(|claim| claim.status.phase == ClaimPhase::Other),
        "here": waiting.is_attached_to_its_node(),
        "attachable": waiting.is_attached(),
        "said": words.map(quotable),
        "of-kubelet": words.is_none_or(|said| Statement::KubeletWaits.is_in(said)),
    });
    Some(waiting.told(if words.is_some() { "other" } else { "other-unsaid" }, more))
}
