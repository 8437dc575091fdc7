//! Whole objects from the API server, for callers that need more than the model has.

use futures_util::StreamExt;
use futures_util::stream::iter;
use kube::api::DynamicObject;
use kube::{Api, Client, Config};
use serde_json::Value;

use super::connect::{ConnectError, client};
use super::resource::WATCHED;
use engine::model::object::{ObjectKind, ObjectRef};

/// How many objects are read concurrently.
const MAX_CONCURRENT: usize = 8;

/// Reads these objects, in the same order, without their field managers; `None` for those that
/// are gone or that the API server refuses.
///
/// # Errors
/// When the configuration has no usable certificates, keys or proxies.
pub async fn documents(
    config: Config,
    wanted: &[(ObjectKind, ObjectRef)],
) -> Result<Vec<Option<Value>>, ConnectError> {
    let client = client(config)?;
    let documents = wanted
        .iter()
        .map(|(kind, reference)| document(&client, *kind, reference));
    Ok(iter(documents).buffered(MAX_CONCURRENT).collect().await)
}

async fn document(client: &Client, kind: ObjectKind, reference: &ObjectRef) -> Option<Value> {
    let watched = WATCHED.iter().find(|watched| watched.kind == kind)?;
    let resource = watched.api_resource();
    let api: Api<DynamicObject> = match &reference.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut object = api
        .get(&reference.name)
        .await
        .inspect_err(|error| tracing::debug!(%reference, "{error}"))
        .ok()?;
    for manager in object.metadata.managed_fields.iter_mut().flatten() {
        manager.fields_v1 = None;
    }
    serde_json::to_value(object).ok()
}
