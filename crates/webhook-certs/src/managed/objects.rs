//! The objects in the cluster: the Secret and the two webhook configurations.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::iter::successors;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{BoxStream, SelectAll, StreamExt, select_all};
use http::{Request, Uri, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;

use super::bundle::Bundle;
use super::plan::{self, Configuration};
use super::stored::Data;
use super::{NAME, SECRET};
use crate::clock::Disagreement;

/// The time that the API server may take to respond.
const ANSWER: Duration = Duration::from_secs(10);

/// The name of the writer in `managedFields`.
const MANAGER: &str = "multi-attach-guard";

/// The kinds of the webhook configurations.
const CONFIGURATIONS: [&str; 2] =
    ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// The type of the Secret, by which other tools find certificates.
const SECRET_TYPE: &str = "kubernetes.io/tls";

/// The way out if a right is missing.
const RIGHTS: &str =
    "Give the guard's ServiceAccount the rights in manifests/base/certificates.yaml";

/// A reason why the certificate cannot be managed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManagedError {
    /// The API server refused, or did not respond.
    #[error("{object} cannot be {done}: {reason}. {way_out}.")]
    Failed {
        /// The object's kind and name.
        object: String,
        /// The attempt: `read` or `written`.
        done: &'static str,
        /// The API server's message, or the reason why it did not respond.
        reason: String,
        /// What happens next, or what to do.
        way_out: &'static str,
    },
    /// A webhook configuration does not exist.
    #[error(
        "{object} does not exist, so the API server does not call its webhooks. Apply the \
         manifests again to switch the guard on."
    )]
    Absent {
        /// The object's kind and name.
        object: String,
    },
    /// The clock of this machine is wrong.
    #[error("{0}.")]
    Clock(Disagreement),
    /// A certificate could not be generated.
    #[error("A certificate for {names} could not be generated: {reason}. Correct the names.")]
    Generate {
        /// The names of the certificate.
        names: String,
        /// The generator's error.
        reason: String,
    },
}

/// Whether a write succeeded, or another writer was faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    Conflict,
}

/// Access to the three objects.
pub(super) struct Objects {
    secrets: Api<Secret>,
    client: Client,
    /// The Secret's kind and name.
    secret: String,
}

/// The part of a webhook configuration that matters here.
#[derive(Deserialize)]
struct Webhooks {
    #[serde(default)]
    webhooks: Vec<Webhook>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    client_config: WebhookClientConfig,
}

impl Objects {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            client,
            secret: format!("Secret {namespace}/{SECRET}"),
        }
    }

    fn configuration(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    /// The time by the clock of the API server, which sends it with every answer, also with a
    /// refusal. `None` if a proxy removes it.
    pub(super) async fn time(&self) -> Result<Option<Timestamp>, ManagedError> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_static("/version");
        let answer = answered(self.client.send(request))
            .await
            .map_err(|error| failed("The API server's clock".to_owned(), "read", error))?;
        let date = answer.headers().get(header::DATE).and_then(|date| date.to_str().ok());
        Ok(date.and_then(|date| Some(rfc2822::parse(date).ok()?.timestamp())))
    }

    /// The Secret, if it exists.
    pub(super) async fn secret(&self) -> Result<Option<Secret>, ManagedError> {
        answered(self.secrets.get_opt(SECRET))
            .await
            .map_err(|error| failed(self.secret.clone(), "read", error))
    }

    /// Writes `data` to the Secret unless it has changed since it was `seen`.
    pub(super) async fn write(
        &self,
        seen: Option<Secret>,
        data: Data,
    ) -> Result<Written, ManagedError> {
        let params =
            PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let is_there = seen.is_some();
        let mut secret = seen.unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(SECRET.to_owned()),
                labels: Some([("app.kubernetes.io/name".to_owned(), NAME.to_owned())].into()),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.to_owned()),
            ..Secret::default()
        });
        secret.data = Some(data);
        let answer = if is_there {
            answered(self.secrets.replace(SECRET, &params, &secret)).await
        } else {
            answered(self.secrets.create(&params, &secret)).await
        };
        written(answer, self.secret.clone())
    }

    /// The webhook configurations that exist, and an error for the first that does not.
    pub(super) async fn configurations(
        &self,
    ) -> Result<(Vec<Configuration>, Option<ManagedError>), ManagedError> {
        let mut found = Vec::new();
        let mut absent = None;
        for kind in CONFIGURATIONS {
            let api = self.configuration(kind);
            let object = format!("{kind} {NAME}");
            match answered(api.get_opt(NAME)).await {
                Ok(Some(seen)) => found.push(read(kind, seen).map_err(|error| {
                    failed(object, "read", Some(kube::Error::SerdeError(error)))
                })?),
                Ok(None) => absent = absent.or(Some(ManagedError::Absent { object })),
                Err(error) => return Err(failed(object, "read", error)),
            }
        }
        Ok((found, absent))
    }

    /// Writes the caBundles, unless the configuration has changed since it was seen.
    pub(super) async fn patch(&self, patch: &plan::Patch<'_>) -> Result<Written, ManagedError> {
        let kind = patch.configuration.kind;
        let api = self.configuration(kind);
        let webhooks: Vec<_> = patch
            .bundles
            .iter()
            .map(|(name, bundle)| {
                let bundle = STANDARD.encode(bundle.pem());
                json!({"name": name, "clientConfig": {"caBundle": bundle}})
            })
            .collect();
        // The API server merges these by the webhooks' names, so everything else stays.
        let body = json!({
            "metadata": {"resourceVersion": patch.configuration.resource_version},
            "webhooks": webhooks,
        });
        let params = PatchParams::apply(MANAGER);
        let patched = answered(api.patch(NAME, &params, &Patch::Strategic(body))).await;
        written(patched, format!("{kind} {NAME}"))
    }

    /// A stream with an item each time one of the objects may have changed.
    pub(super) fn changes(&self) -> SelectAll<BoxStream<'static, ()>> {
        let secret = changes(self.secrets.clone(), SECRET);
        let configurations = CONFIGURATIONS.map(|kind| changes(self.configuration(kind), NAME));
        select_all([secret].into_iter().chain(configurations))
    }
}

fn read(kind: &'static str, seen: DynamicObject) -> Result<Configuration, serde_json::Error> {
    let Webhooks { webhooks } = serde_json::from_value(seen.data)?;
    let bundles = webhooks.into_iter().map(|webhook| {
        let bundle = webhook.client_config.ca_bundle.unwrap_or_default();
        (webhook.name, Bundle::read(&bundle.0))
    });
    Ok(Configuration {
        kind,
        resource_version: seen.metadata.resource_version.unwrap_or_default(),
        bundles: bundles.collect(),
    })
}

/// The changes of one object. Errors are ignored, because the objects are also checked at
/// intervals.
fn changes<K>(api: Api<K>, name: &str) -> BoxStream<'static, ()>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watcher(api, only).default_backoff().filter_map(|event| ready(event.ok().map(drop))).boxed()
}

/// The response to a request, or its error, which is `None` if the API server does not answer in
/// time.
async fn answered<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Option<kube::Error>> {
    match timeout(ANSWER, request).await {
        Ok(answer) => answer.map_err(Some),
        Err(_) => Err(None),
    }
}

/// Whether a write of the object succeeded.
fn written<T>(
    answer: Result<T, Option<kube::Error>>,
    object: String,
) -> Result<Written, ManagedError> {
    match answer {
        Ok(_) => Ok(Written::Yes),
        Err(Some(kube::Error::Api(status))) if status.code == 409 => Ok(Written::Conflict),
        Err(error) => Err(failed(object, "written", error)),
    }
}

fn failed(object: String, done: &'static str, error: Option<kube::Error>) -> ManagedError {
    let mut way_out = "Retrying";
    let reason = match error {
        Some(kube::Error::Api(status)) => {
            if status.is_forbidden() {
                way_out = RIGHTS;
            }
            status.message
        }
        Some(error) => {
            let causes = successors(Some(&error as &dyn std::error::Error), |error| error.source());
            // The innermost error is the most specific: "Connection refused" rather than "client
            // error".
            causes.last().map(ToString::to_string).unwrap_or_default()
        }
        None => "the API server does not answer".to_owned(),
    };
    ManagedError::Failed { object, done, reason, way_out }
}
