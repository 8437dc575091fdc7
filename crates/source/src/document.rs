//! Whole objects from the API server, for callers that need fields which the model lacks.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::stream::iter;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
use kube::api::DynamicObject;
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use super::connect::{ConnectError, client};
use super::resource::{WATCHED, access, api_resource};
use engine::model::object::{ObjectKind, ObjectRef};
use engine::policy::keys::ALL;

/// The number of objects that are read concurrently.
const MAX_CONCURRENT: usize = 8;

/// Reads these objects, and leaves out those that are gone or that the API server refuses. Of the
/// fields that field managers own, only the guard's annotations and labels are kept.
///
/// # Errors
/// Fails if the configuration has no usable certificates, keys or proxies.
pub async fn documents(
    config: Config,
    wanted: &[ObjectRef],
) -> Result<HashMap<ObjectRef, Value>, ConnectError> {
    let client = client(config)?;
    let documents = wanted.iter().map(|reference| document(&client, reference));
    let found: Vec<_> = iter(documents).buffered(MAX_CONCURRENT).collect().await;
    Ok(found.into_iter().flatten().collect())
}

async fn document(client: &Client, reference: &ObjectRef) -> Option<(ObjectRef, Value)> {
    let kind = ObjectKind::of_manifest(&reference.api_version, &reference.kind)
        .filter(|kind| WATCHED.contains(kind))?;
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = access(client, namespace, &api_resource(kind));
    let mut object = api
        .get(&reference.name)
        .await
        .inspect_err(|error| tracing::debug!(%reference, "{error}"))
        .ok()?;
    for manager in object.metadata.managed_fields.iter_mut().flatten() {
        let owned = manager.fields_v1.take();
        manager.fields_v1 = owned.and_then(|FieldsV1(fields)| own_keys(fields));
    }
    Some((reference.clone(), serde_json::to_value(object).ok()?))
}

/// The guard's annotations and labels among the fields that a manager owns. All of these fields
/// together would be larger than the object.
fn own_keys(mut fields: Value) -> Option<FieldsV1> {
    let is_own = |key: &str| ALL.iter().any(|own| key.strip_prefix("f:") == Some(own));
    let metadata = fields.get_mut("f:metadata")?.as_object_mut()?;
    metadata.retain(|_, keys| match keys {
        Value::Object(keys) => {
            keys.retain(|key, _| is_own(key));
            !keys.is_empty()
        }
        _ => false,
    });
    (!metadata.is_empty()).then(|| FieldsV1(json!({"f:metadata": metadata})))
}
