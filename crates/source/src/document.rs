//! Objects as the API server has them, for what their facts do not tell.

use futures_util::StreamExt;
use futures_util::stream::iter;
use kube::api::DynamicObject;
use kube::{Api, Client, Config};
use serde_json::Value;

use super::connect::{ConnectError, client};
use super::resource::WATCHED;
use engine::model::object::{ObjectKind, ObjectRef};

/// How many are asked for at the same time.
const AT_ONCE: usize = 8;

/// The documents of these objects, in the same order, without which fields their managers own;
/// `None` for those that are gone or that the API server does not give.
///
/// # Errors
/// When the configuration makes no client.
pub async fn documents(
    config: Config,
    wanted: &[(ObjectKind, ObjectRef)],
) -> Result<Vec<Option<Value>>, ConnectError> {
    let client = client(config)?;
    let asked = wanted
        .iter()
        .map(|(kind, reference)| document(&client, *kind, reference));
    Ok(iter(asked).buffered(AT_ONCE).collect().await)
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
