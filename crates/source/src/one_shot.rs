//! A cluster read once, as far as it lets itself be read.
//!
//! Unlike the live view this needs no right to all of it: what is refused is noted, and
//! the namespaced kinds are asked for in one namespace where that is enough.

use futures_util::StreamExt;
use futures_util::stream::iter;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::ApiResource;
use kube::{Api, Client, Config};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::connect::{ConnectError, client};
use super::resource::{RawObject, WATCHED, Watched};
use super::watch::root_cause;
use engine::model::lease::NODE_LEASES;
use engine::model::object::ObjectKind;
use engine::observed::{Observed, Unread};
use engine::snapshot::Snapshot;

/// How many resources are read at the same time.
const AT_ONCE: usize = 6;

/// Objects in one page.
const PAGE: u32 = 500;

/// A cluster at one moment.
#[derive(Debug, Default)]
pub struct OneShot {
    /// The guard's own facts. Of a kind that could not be read nothing is synced.
    pub cluster: Snapshot,
    /// The rest.
    pub observed: Observed,
    /// What time it was for the API server, where it said so.
    pub now: Option<Timestamp>,
}

/// Reads a cluster, the namespaced kinds in `namespace` alone where one is given. What is
/// refused, or not read by `deadline`, is noted as unread.
///
/// # Errors
/// When the configuration makes no client.
pub async fn read(
    config: Config,
    namespace: Option<&str>,
    deadline: Instant,
) -> Result<OneShot, ConnectError> {
    let client = client(config)?;
    let reader = Reader {
        client: &client,
        deadline,
    };
    let resources = WATCHED
        .iter()
        .map(|watched| ListRequest::of(watched, namespace));
    let events = |fields| ListRequest::beside("", "events", "Event", namespace).only(fields);
    let beside = [
        ListRequest::attachments(),
        ListRequest::leases(),
        events("reason=FailedAttachVolume"),
        events("reason=FailedMount"),
        events("reason=FailedMapVolume"),
    ];
    let sources: Vec<ListRequest<'_>> = resources.chain(beside).collect();
    let mut one_shot = OneShot::default();
    let ((), now) = tokio::join!(reader.read(&sources, &mut one_shot), reader.time());
    one_shot.now = now;
    Ok(one_shot)
}

/// A resource to be read.
pub(super) struct ListRequest<'a> {
    kind: Option<ObjectKind>,
    resource: ApiResource,
    namespace: Option<&'a str>,
    fields: Option<String>,
}

impl<'a> ListRequest<'a> {
    fn of(watched: &Watched, namespace: Option<&'a str>) -> Self {
        Self {
            kind: Some(watched.kind),
            resource: watched.api_resource(),
            namespace: namespace.filter(|_| watched.kind.is_namespaced()),
            fields: None,
        }
    }

    pub(super) fn beside(
        group: &str,
        plural: &str,
        kind: &str,
        namespace: Option<&'a str>,
    ) -> Self {
        let api_version = match group {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        };
        Self {
            kind: None,
            resource: ApiResource {
                group: group.to_owned(),
                version: "v1".to_owned(),
                api_version,
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            },
            namespace,
            fields: None,
        }
    }

    pub(super) fn attachments() -> Self {
        let group = "storage.k8s.io";
        Self::beside(group, "volumeattachments", "VolumeAttachment", None)
    }

    /// The Leases of the nodes.
    pub(super) fn leases() -> Self {
        Self::beside("coordination.k8s.io", "leases", "Lease", Some(NODE_LEASES))
    }

    /// Those alone whose fields are so.
    pub(super) fn only(mut self, fields: &str) -> Self {
        self.fields = Some(fields.to_owned());
        self
    }
}

pub(super) struct Reader<'a> {
    pub(super) client: &'a Client,
    pub(super) deadline: Instant,
}

impl Reader<'_> {
    /// Reads the resources into `one_shot`, or why they could not be read.
    pub(super) async fn read(&self, sources: &[ListRequest<'_>], one_shot: &mut OneShot) {
        let mut lists = iter(sources)
            .map(async |source| (source, self.list(source).await))
            .buffered(AT_ONCE);
        while let Some((source, list)) = lists.next().await {
            match list {
                Ok(objects) => one_shot.take(source, &objects),
                // Some are read in several parts.
                Err(_) if !one_shot.observed.has_read(&source.resource.plural) => {}
                Err(reason) => one_shot.observed.unread.push(Unread {
                    resource: source.resource.plural.as_str().into(),
                    reason: reason.trim_end_matches('.').to_owned(),
                }),
            }
        }
    }

    /// All objects of a resource, or why they could not be read.
    async fn list(&self, source: &ListRequest<'_>) -> Result<Vec<RawObject>, String> {
        match timeout_at(self.deadline, self.pages(source)).await {
            Ok(Ok(objects)) => Ok(objects),
            Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
            Ok(Err(error)) => Err(root_cause(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    async fn pages(&self, source: &ListRequest<'_>) -> Result<Vec<RawObject>, kube::Error> {
        let api: Api<RawObject> = match source.namespace {
            Some(namespace) => {
                Api::namespaced_with(self.client.clone(), namespace, &source.resource)
            }
            None => Api::all_with(self.client.clone(), &source.resource),
        };
        let mut parameters = ListParams::default().limit(PAGE);
        parameters.field_selector = source.fields.clone();
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

    /// What time it is for the API server: its answers are dated.
    pub(super) async fn time(&self) -> Option<Timestamp> {
        let request = http::Request::get("/version").body(Body::empty()).ok()?;
        let answer = timeout_at(self.deadline, self.client.send(request)).await;
        let answer = answer.ok()?.ok()?;
        let date = answer.headers().get("date")?.to_str().ok()?;
        Some(rfc2822::parse(date).ok()?.timestamp())
    }
}

impl OneShot {
    fn take(&mut self, source: &ListRequest<'_>, objects: &[RawObject]) {
        let observed = &mut self.observed;
        let mut malformed = 0;
        match source.resource.plural.as_str() {
            "pods" => malformed += parse(objects, &mut observed.pods),
            "nodes" => malformed += parse(objects, &mut observed.nodes),
            "volumeattachments" => malformed += parse(objects, &mut observed.attachments),
            "leases" => malformed += parse(objects, &mut observed.leases),
            "events" => malformed += parse(objects, &mut observed.events),
            _ => {}
        }
        if let Some(kind) = source.kind {
            for object in objects {
                match object.read(kind) {
                    Ok(object) => {
                        self.cluster.apply(object);
                    }
                    Err(_) => malformed += 1,
                }
            }
            self.cluster.synced(kind);
        }
        if malformed > 0 {
            observed.unread.push(Unread {
                resource: source.resource.plural.as_str().into(),
                reason: format!(
                    "{malformed} of {} are not what their kind says",
                    objects.len()
                ),
            });
        }
    }
}

/// Adds what can be read of `objects` and counts what cannot.
fn parse<T: DeserializeOwned>(objects: &[RawObject], into: &mut Vec<T>) -> usize {
    let before = into.len();
    into.extend(objects.iter().filter_map(|raw| raw.parse().ok()));
    objects.len() - (into.len() - before)
}
