//! Reads a cluster once, as far as the user's rights go.
//!
//! Unlike the informer, this needs no right to all kinds: it records the kinds that are refused,
//! and reads namespaced kinds in one namespace if that is enough.

use futures_util::StreamExt;
use futures_util::stream::iter;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::ApiResource;
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::connect::{ConnectError, client};
use super::resource::{RawObject, WATCHED, access, api_resource};
use super::watch::root_cause;
use engine::model::lease::NODE_LEASES;
use engine::model::object::{Object, ObjectKind};
use engine::model::observed::{Observed, Unread};
use engine::model::workload::WorkloadKind;
use engine::snapshot::Snapshot;

/// The number of resources that are read concurrently.
const MAX_CONCURRENT: usize = 6;

/// The number of objects in one page.
const PAGE: u32 = 500;

/// A cluster at one moment.
#[derive(Debug, Default)]
pub struct OneShot {
    /// The facts that verdicts depend on. A kind that could not be read is not synced.
    pub cluster: Snapshot,
    /// The state of pods, nodes and volumes.
    pub observed: Observed,
    /// The time of the API server's clock, if it is known.
    pub now: Option<Timestamp>,
}

/// Reads a cluster. With a `namespace`, namespaced kinds are read only in it, and no other
/// Namespace is read, because its own roles may permit that much. Resources that are refused, or
/// not read by `deadline`, are recorded as unread.
///
/// # Errors
/// Fails if the configuration has no usable certificates, keys or proxies.
pub async fn read(
    config: Config,
    namespace: Option<&str>,
    deadline: Instant,
) -> Result<OneShot, ConnectError> {
    let reader = Reader { client: client(config)?, deadline };
    let all = |resource, of_namespace| ListRequest {
        kind: None,
        resource,
        namespace: of_namespace,
        fields: None,
        name: None,
    };
    let facts = WATCHED.map(|kind| ListRequest {
        kind: Some(kind),
        namespace: namespace.filter(|_| kind.is_namespaced()),
        name: namespace.filter(|_| kind == ObjectKind::Namespace),
        ..all(api_resource(kind), None)
    });
    let events = |fields| ListRequest {
        fields: Some(fields),
        ..all(ApiResource::erase::<Event>(&()), namespace)
    };
    let observed = [
        all(api_resource(ObjectKind::VolumeAttachment), None),
        all(api_resource(ObjectKind::Lease), Some(NODE_LEASES)),
        events("reason=FailedAttachVolume"),
        events("reason=FailedMount"),
        events("reason=FailedMapVolume"),
        events("reason=FailedCreatePodSandBox"),
        events("involvedObject.kind=PersistentVolumeClaim"),
    ];
    let requests: Vec<ListRequest<'_>> = facts.into_iter().chain(observed).collect();
    let mut one_shot = OneShot::default();
    let ((), now) = tokio::join!(reader.read(&requests, &mut one_shot), reader.time());
    one_shot.now = now;
    Ok(one_shot)
}

/// A request to list a resource.
struct ListRequest<'a> {
    kind: Option<ObjectKind>,
    resource: ApiResource,
    namespace: Option<&'a str>,
    /// Only objects that this field selector matches.
    fields: Option<&'static str>,
    /// The only object that is read.
    name: Option<&'a str>,
}

struct Reader {
    client: Client,
    deadline: Instant,
}

impl Reader {
    /// Reads the resources into `one_shot`, and records those that could not be read.
    async fn read(&self, requests: &[ListRequest<'_>], one_shot: &mut OneShot) {
        let mut lists = iter(requests)
            .map(async |request| (request, self.list(request).await))
            .buffered(MAX_CONCURRENT);
        while let Some((request, list)) = lists.next().await {
            match list {
                Ok(objects) => one_shot.take(request, &objects),
                // The controller of this kind is not installed, or this user may not see its
                // objects.
                Err(_) if request.kind.is_some_and(|kind| !kind.is_built_in()) => {}
                // Some resources take several requests; one record is enough.
                Err(_) if !one_shot.observed.has_read(&request.resource.plural) => {}
                Err(reason) => one_shot.observed.unread.push(Unread {
                    resource: request.resource.plural.as_str().into(),
                    reason: reason.trim_end_matches('.').to_owned(),
                }),
            }
        }
    }

    /// Lists all objects of a resource, or says why they could not be read.
    async fn list(&self, request: &ListRequest<'_>) -> Result<Vec<RawObject>, String> {
        match timeout_at(self.deadline, self.pages(request)).await {
            Ok(Ok(objects)) => Ok(objects),
            Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
            Ok(Err(error)) => Err(root_cause(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    async fn pages(&self, request: &ListRequest<'_>) -> Result<Vec<RawObject>, kube::Error> {
        let namespace = request.namespace.unwrap_or_default();
        let api: Api<RawObject> = access(&self.client, namespace, &request.resource);
        if let Some(name) = request.name {
            return Ok(api.get_opt(name).await?.into_iter().collect());
        }
        let mut parameters = ListParams::default().limit(PAGE);
        parameters.field_selector = request.fields.map(str::to_owned);
        let mut objects = Vec::new();
        loop {
            let page = api.list(&parameters).await?;
            objects.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }

    /// The time of the API server's clock, from the date of a response.
    async fn time(&self) -> Option<Timestamp> {
        let request = http::Request::get("/version").body(Body::empty()).ok()?;
        let answer = timeout_at(self.deadline, self.client.send(request)).await.ok()?.ok()?;
        let date = answer.headers().get("date")?.to_str().ok()?;
        Some(rfc2822::parse(date).ok()?.timestamp())
    }
}

impl OneShot {
    fn take(&mut self, request: &ListRequest<'_>, objects: &[RawObject]) {
        let observed = &mut self.observed;
        let mut malformed = match request.resource.plural.as_str() {
            "pods" => parse(objects, &mut observed.pods),
            "nodes" => parse(objects, &mut observed.nodes),
            "volumeattachments" => parse(objects, &mut observed.attachments),
            "leases" => parse(objects, &mut observed.leases),
            "events" => parse(objects, &mut observed.events),
            _ => 0,
        };
        if let Some(kind) = request.kind {
            for object in objects {
                match object.read(kind) {
                    Ok(object) => {
                        if let Object::Workload(set) = &object
                            && set.kind == WorkloadKind::ReplicaSet
                        {
                            observed.replica_sets.push(set.clone());
                        }
                        self.cluster.apply(object);
                    }
                    Err(_) => malformed += 1,
                }
            }
            self.cluster.synced(kind);
        }
        if malformed > 0 {
            observed.unread.push(Unread {
                resource: request.resource.plural.as_str().into(),
                reason: format!("{malformed} of {} are malformed", objects.len()),
            });
        }
    }
}

/// Adds the well-formed ones of `objects`, and returns the number of malformed ones.
fn parse<T: DeserializeOwned>(objects: &[RawObject], into: &mut Vec<T>) -> usize {
    let before = into.len();
    into.extend(objects.iter().filter_map(|raw| raw.parse().ok()));
    objects.len() - (into.len() - before)
}
