//! Writes what the policies in the API server need: one VolumeFacts object a namespace, and
//! compares these policies with those of this version.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use engine::volume_facts::{Members, VolumeFacts};
use serde_json::{Value, json};
use source::informer::Informer;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::kept_objects::{KeptObjects, Kind, Need, Writer};
use crate::cli::policies::{self, Installed};

pub(super) const KIND: Kind = Kind {
    group: "multi-attach-guard.dev",
    kind: "VolumeFacts",
    plural: "volumefacts",
    // The policies' bindings name it too.
    name: "volumes",
    fields: &["spec"],
    condition: "admission-policies",
    ready: "The policies in the API server are those of this version.",
    guide: "docs/always-there.md says what --admission-policies needs.",
};

/// The largest `spec` that is written, in bytes: etcd takes 1.5 MiB, and a request has more
/// in it than the spec.
const LARGEST: usize = 1 << 20;

/// Between two looks at the policies in the API server.
const BETWEEN_COMPARISONS: Duration = Duration::from_secs(15);

/// Writes until the program ends; without a writer there is nothing to do.
pub(super) async fn follow(writer: Option<Writer>) -> Infallible {
    let live = writer.as_ref().and_then(|it| Some((it, it.view.live()?)));
    let Some((writer, live)) = live else {
        return std::future::pending().await;
    };
    let metrics = writer.metrics.volume_facts.clone();
    let objects = KeptObjects::new(&KIND, writer.client.clone(), metrics);
    tokio::select! {
        never = objects.keep(live, &writer.health, || wanted(writer, live)) => never,
        never = compare(writer) => never,
    }
}

/// Compares the policies in the API server with those of this version, again and again.
async fn compare(writer: &Writer) -> Infallible {
    loop {
        let fault = match policies::installed(&writer.client).await {
            Ok(Installed::AsHere) => None,
            Ok(Installed::Nothing) => Some(
                "The API server has no policies of multi-attach-guard, so it refuses nothing \
                 while the guard is away. Run `multi-attach-guard policies | kubectl apply -f -`."
                    .to_owned(),
            ),
            Ok(Installed::Otherwise(sentence)) => Some(sentence),
            Err(error) => {
                tracing::debug!(%error, "The policies in the API server cannot be read.");
                Some(
                    "The policies in the API server cannot be read, so it is not known whether \
                     they are those of this version. The ClusterRole \
                     multi-attach-guard-admission-policies has the right."
                        .to_owned(),
                )
            }
        };
        writer.health.note(Need::Policies, fault);
        sleep(BETWEEN_COMPARISONS).await;
    }
}

/// The objects that the cluster should have, by namespace. The look at a large cluster
/// takes a second, in which what runs beside it gets its turns.
async fn wanted(writer: &Writer, live: &Informer) -> HashMap<String, Value> {
    let effective = writer.effective.load_full();
    let mut wanted = HashMap::new();
    for (namespace, members) in live.look(Members::of) {
        let facts = live.look(|view| VolumeFacts::of(&namespace, &members, view, &effective));
        if !facts.is_empty() {
            wanted.insert(namespace.to_string(), object(&namespace, &facts));
        }
        yield_now().await;
    }
    let too_large = wanted.values().filter(|it| is_left_out(it)).count();
    writer.metrics.volume_facts.set_too_large(too_large);
    wanted
}

/// Whether the object holds no facts because they are too large.
fn is_left_out(object: &Value) -> bool {
    object.pointer("/status/message").is_some()
}

/// The object that holds the facts, or says why it does not.
fn object(namespace: &str, facts: &VolumeFacts) -> Value {
    let mut object = json!({
        "apiVersion": "multi-attach-guard.dev/v1alpha1",
        "kind": "VolumeFacts",
        "metadata": { "name": KIND.name, "namespace": namespace },
        "spec": facts,
        "status": {},
    });
    let size = object["spec"].to_string().len();
    if size > LARGEST {
        object["spec"] = json!({});
        object["status"]["message"] = json!(format!(
            "The facts of this namespace take {size} bytes and at most {LARGEST} are written, so \
             the API server refuses nothing here while the guard is away."
        ));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts about so many claims with names as provisioners make them.
    fn facts(claims: usize) -> VolumeFacts {
        let claim = |at: usize| {
            let name = format!("data-2f1c8f0e-7a52-4f5b-9d0e-{at:012}");
            (name.into(), "OneNode-1f2e3d4c".to_owned())
        };
        VolumeFacts {
            claims: (0..claims).map(claim).collect(),
            denied: [("Deployment", vec!["rolling-update-overlap"])].into(),
            ..VolumeFacts::default()
        }
    }

    #[test]
    fn a_namespace_of_many_claims_is_left_out_and_its_object_says_so() {
        let of_many = object("shop", &facts(15_000));
        assert!(!is_left_out(&of_many));
        assert_eq!(
            of_many["spec"]["claims"]
                .as_object()
                .map(serde_json::Map::len),
            Some(15_000)
        );
        let of_too_many = object("shop", &facts(20_000));
        assert!(is_left_out(&of_too_many));
        assert_eq!(of_too_many["spec"], json!({}));
        let message = of_too_many["status"]["message"].as_str().unwrap();
        assert!(message.contains("refuses nothing here"), "{message}");
    }
}
