//! The revisions of a workload. An update back to a revision whose pods run is a rollback.
//!
//! The view does not keep revisions: only their templates matter, and only if an update would be
//! denied. They are requested at that point, or read from files.

use std::cmp::Reverse;
use std::io::empty;
use std::path::PathBuf;

use engine::model::Text;
use engine::model::metadata::is_name;
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use http::header::ACCEPT;
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::{ListMeta, Request};
use manifest::find::{Exclude, find};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::template_defaults::with_defaults;
use super::template_digest::Digester;
use super::turns::{Asker, Turns};
use super::watch::root_cause;

/// The number of concurrent lists, in all and for one namespace; further ones wait their turn.
/// Denials are rare.
const AT_ONCE: usize = 16;
const OF_A_NAMESPACE: usize = 2;

/// The number of rows in one page, and the largest size in bytes of a page or a revision. All
/// concurrent lists together take 32 MiB. The API server stores no revision of more than 1.5 MiB.
const PAGE: u32 = 500;
const MAX_BYTES: usize = 2 << 20;

/// The largest number of pages of one list. Kubernetes keeps ten revisions of each workload.
const MAX_PAGES: usize = 10;

/// The largest number of revisions that are read whole. A Deployment rarely has pods of two
/// revisions.
const MAX_READ: usize = 24;

/// The format of a list that `kubectl get` requests: the columns that are printed for each object.
const TABLE: HeaderValue = HeaderValue::from_static("application/json;as=Table;g=meta.k8s.io;v=v1");

/// The format of a list of metadata alone.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");

/// The label that names the revision of a DaemonSet's pod.
const REVISION_LABEL: &str = "controller-revision-hash";

/// The workload that is updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid, as text.
    pub uid: &'a str,
    /// Labels that its revisions have; empty if they are not known.
    pub labels: Vec<(&'a str, &'a str)>,
    /// The name of the only revision that matters, if it is known.
    pub revision: Option<&'a str>,
}

/// A revision of a workload; for a Deployment, one that has pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// `ReplicaSet` or `ControllerRevision`.
    pub kind: &'static str,
    /// Its name.
    pub name: Text,
    /// Its number, which grows from revision to revision; 0 if it has none.
    pub number: i64,
    /// The time of its creation, in the notation of the API server.
    pub created: Text,
    /// Its number of pods, if it is known: a ReplicaSet reports it. The pods of a DaemonSet's
    /// revision are counted if the status of the DaemonSet does not tell its revisions apart.
    pub pods: Option<i64>,
    /// The number of these pods that are ready.
    pub ready: i64,
    /// Whether its template is the requested one.
    pub has_template: bool,
}

impl Revision {
    /// The hash on the label of its pods, which is the end of its name (`newRevision` in
    /// `pkg/controller/history/controller_history.go`).
    pub fn hash(&self, owner: &str) -> Option<&str> {
        self.name.strip_prefix(owner)?.strip_prefix('-')
    }
}

/// A reason why the revisions could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RevisionsError {
    /// The account has no right to list this resource.
    #[error("the guard may not list {0}")]
    Forbidden(&'static str),
    /// The API server reported another error.
    #[error("{resource} cannot be listed: {reason}")]
    Failed {
        /// The resource.
        resource: &'static str,
        /// The error.
        reason: String,
    },
    /// There are more objects of this resource, or larger ones, than the guard reads.
    #[error("there are more {0} with its labels, or larger ones, than the guard reads")]
    TooMany(&'static str),
    /// The API server did not list this resource in time.
    #[error("the API server did not list {0} in time")]
    Late(&'static str),
}

/// Requests revisions from an API server.
pub struct LiveRevisions(Turns);

impl Default for LiveRevisions {
    fn default() -> Self {
        Self(Turns::new(AT_ONCE, OF_A_NAMESPACE))
    }
}

impl LiveRevisions {
    /// The current revisions of `owner` in the API server, compared with `template`.
    ///
    /// # Errors
    /// Fails if the API server does not return them by `deadline`.
    pub async fn find(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        template: &RawValue,
        asker: Asker<'_>,
        deadline: Instant,
    ) -> Result<Vec<Revision>, RevisionsError> {
        let resource = RESOURCES.iter().find(|resource| resource.owners.contains(&owner.kind));
        let Some(resource) = resource.filter(|_| is_name(owner.namespace)) else {
            return Ok(Vec::new());
        };
        let late = RevisionsError::Late(resource.plural);
        let Some(_turn) = self.0.take(asker, deadline).await else {
            return Err(late);
        };
        let is_wanted = comparison(owner.kind, template);
        let list = async {
            let mut revisions = resource.list(client, owner, is_wanted).await?;
            if let Some(revision) = with_pods_to_count(owner, &mut revisions) {
                revision.pods = PODS.count(client, owner, revision).await?;
            }
            Ok(revisions)
        };
        timeout_at(deadline, list).await.unwrap_or(Err(late))
    }
}

/// Revisions in files that stand for a cluster.
#[derive(Debug, Default)]
pub struct FileRevisions {
    /// Revisions and pods as JSON.
    objects: Vec<(&'static Resource, String)>,
}

impl FileRevisions {
    /// Reads the revisions in the files and directories `paths`. These were read for their facts
    /// before, so standard input has already been consumed and counts as empty.
    pub fn read(paths: &[PathBuf]) -> Self {
        let found = find(paths, &Exclude::nothing(), &mut empty());
        let texts = found
            .sources
            .iter()
            .filter_map(|source| source.text().ok())
            .filter(|text| RESOURCES.iter().any(|resource| text.contains(resource.kind)));
        let mut objects = Vec::new();
        for text in texts {
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_default();
            for document in documents {
                match document.get("items").and_then(Value::as_array) {
                    Some(items) => objects.extend(items.iter().filter_map(revision)),
                    None => objects.extend(revision(&document)),
                }
            }
        }
        Self { objects }
    }

    /// The revisions of `owner`, compared with `template`.
    pub fn find(&self, owner: &Owner<'_>, template: &RawValue) -> Vec<Revision> {
        let is_wanted = comparison(owner.kind, template);
        let mut revisions: Vec<Revision> = self
            .objects
            .iter()
            .filter(|(resource, _)| resource.owners.contains(&owner.kind))
            .filter_map(|(resource, json)| resource.read(json, owner, &is_wanted))
            .collect();
        if let Some(revision) = with_pods_to_count(owner, &mut revisions) {
            let running = self
                .objects
                .iter()
                .filter(|(resource, _)| resource.kind == PODS.kind)
                .filter_map(|(_, json)| Stored::pod(json, owner, revision))
                .filter(|pod| pod.status.phase == "Running");
            revision.pods = i64::try_from(running.count()).ok();
        }
        revisions
    }
}

/// Whether a template of a workload of this kind is the `wanted` one. The API server writes the
/// defaults of a pod into a ReplicaSet, but not into the custom resource from which it is made.
fn comparison(kind: WorkloadKind, wanted: &RawValue) -> impl Fn(&RawValue) -> bool {
    let digester = Digester::default();
    let number = move |template: &RawValue| match kind {
        WorkloadKind::Rollout => digester.number(&with_defaults(template)?),
        _ => digester.number(template),
    };
    let wanted = number(wanted);
    move |template: &RawValue| number(template) == wanted
}

/// The revision of a DaemonSet whose pods must be counted: it has the requested template, and there
/// are more than two revisions. The status only says how many pods are not of the newest one.
fn with_pods_to_count<'r>(owner: &Owner<'_>, all: &'r mut [Revision]) -> Option<&'r mut Revision> {
    let is_ambiguous = owner.kind == WorkloadKind::DaemonSet && all.len() > 2;
    all.iter_mut().find(|revision| is_ambiguous && revision.has_template)
}

/// Whether two templates are the same to Kubernetes.
pub fn is_same_template(a: &RawValue, b: &RawValue) -> bool {
    let digester = Digester::default();
    digester.number(a) == digester.number(b)
}

fn revision(document: &Value) -> Option<(&'static Resource, String)> {
    let kind = document.get("kind")?.as_str()?;
    let resource = RESOURCES.iter().find(|resource| resource.kind == kind)?;
    Some((resource, document.to_string()))
}

/// A resource that holds revisions, or pods.
#[derive(Debug)]
struct Resource {
    kind: &'static str,
    plural: &'static str,
    /// The path of its API version.
    api: &'static str,
    owners: &'static [WorkloadKind],
    /// The column of numbers. The object with the largest number is read first; those with 0 are
    /// not read.
    column: &'static str,
    /// Whether that number is the revision's own. Then the newest revision with the template is
    /// enough. The number of a ReplicaSet counts its pods, and all ReplicaSets with pods are read.
    is_numbered: bool,
}

static RESOURCES: [Resource; 3] = [
    Resource {
        kind: "ReplicaSet",
        plural: "replicasets",
        api: "apis/apps/v1",
        owners: &[WorkloadKind::Deployment, WorkloadKind::Rollout],
        column: "Current",
        is_numbered: false,
    },
    Resource {
        kind: "ControllerRevision",
        plural: "controllerrevisions",
        api: "apis/apps/v1",
        owners: &[WorkloadKind::StatefulSet, WorkloadKind::DaemonSet],
        column: "Revision",
        is_numbered: true,
    },
    PODS,
];

/// The pods of revisions. They are not revisions of any kind of workload.
const PODS: Resource = Resource {
    kind: "Pod",
    plural: "pods",
    api: "api/v1",
    owners: &[],
    column: "",
    is_numbered: false,
};

impl Resource {
    async fn list(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        is_wanted: impl Fn(&RawValue) -> bool,
    ) -> Result<Vec<Revision>, RevisionsError> {
        let names = match owner.revision {
            Some(name) => vec![name.into()],
            None => self.names(client, owner).await?,
        };
        let mut revisions: Vec<Revision> = Vec::new();
        for (read, name) in names.into_iter().enumerate() {
            let is_known =
                revisions.len() > 2 && revisions.iter().any(|revision| revision.has_template);
            if self.is_numbered && is_known {
                break;
            }
            if read == MAX_READ {
                return Err(self.too_many());
            }
            let parameters = ListParams::default().fields(&format!("metadata.name={name}"));
            let body = self.page(client, owner, &parameters, None).await?;
            let list: List<'_> = self.parsed(&body)?;
            let items = list.items.iter();
            revisions.extend(items.filter_map(|item| self.read(item.get(), owner, &is_wanted)));
        }
        Ok(revisions)
    }

    fn too_many(&self) -> RevisionsError {
        RevisionsError::TooMany(self.plural)
    }

    /// The names of possible revisions with pods. No selector finds these, or those of an owner, so
    /// all objects with the owner's labels are listed, one line each. With `resourceVersion=0` it
    /// would be one page of any size, and might lack a revision whose pod has the volume by now.
    async fn names(&self, client: &Client, owner: &Owner<'_>) -> Result<Vec<Text>, RevisionsError> {
        let labels = owner.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let selector = labels.collect::<Vec<_>>().join(",");
        let mut parameters = ListParams::default().limit(PAGE);
        parameters.label_selector = Some(selector).filter(|selector| !selector.is_empty());
        let mut found = Vec::new();
        for _ in 0..MAX_PAGES {
            let body = self.page(client, owner, &parameters, Some(TABLE)).await?;
            let table: Table = self.parsed(&body)?;
            let at = |name| table.columns.iter().position(|column| column.name == name);
            let (name_at, count_at) = at("Name").zip(at(self.column)).unwrap_or_default();
            for row in table.rows.into_iter().flatten() {
                let count = row.cells.get(count_at).and_then(Value::as_i64);
                let name = row.cells.get(name_at).and_then(Value::as_str).map(Text::from);
                found.extend(name.filter(|_| count != Some(0)).map(|name| (count, name)));
            }
            match table.metadata.continue_.filter(|token| !token.is_empty()) {
                _ if !self.is_numbered && found.len() > MAX_READ => break,
                Some(token) => parameters.continue_token = Some(token),
                None => {
                    found.sort_by_key(|(count, _)| Reverse(*count));
                    return Ok(found.into_iter().map(|(_, name)| name).collect());
                }
            }
        }
        Err(self.too_many())
    }

    /// The number of running pods of a revision of `owner`, which have their volumes; `None` if the
    /// guard cannot know it.
    async fn count(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        revision: &Revision,
    ) -> Result<Option<i64>, RevisionsError> {
        let Some(hash) = revision.hash(owner.name) else {
            return Ok(None);
        };
        let running = ListParams::default()
            .limit(PAGE)
            .fields("status.phase=Running")
            .labels(&format!("{REVISION_LABEL}={hash}"));
        let body = match self.page(client, owner, &running, Some(METADATA)).await {
            Err(RevisionsError::Forbidden(_)) => return Ok(None),
            body => body?,
        };
        let list: List<'_> = self.parsed(&body)?;
        let items = list.items.iter();
        let pods = items.filter_map(|item| Stored::pod(item.get(), owner, revision));
        Ok(i64::try_from(pods.count()).ok())
    }

    async fn page(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        parameters: &ListParams,
        accept: Option<HeaderValue>,
    ) -> Result<Vec<u8>, RevisionsError> {
        let Owner { namespace, .. } = owner;
        let path = format!("/{}/namespaces/{namespace}/{}", self.api, self.plural);
        let mut request =
            Request::new(path).list(parameters).map_err(|error| self.failed(&error))?;
        if accept == Some(TABLE) {
            let uri = format!("{}&includeObject=None", request.uri());
            *request.uri_mut() = uri.parse().map_err(|error| self.failed(&error))?;
        }
        if let Some(accept) = accept {
            request.headers_mut().insert(ACCEPT, accept);
        }
        let response =
            client.send(request.map(Body::from)).await.map_err(|error| self.failed(&error))?;
        match response.status() {
            StatusCode::FORBIDDEN => Err(RevisionsError::Forbidden(self.plural)),
            status if !status.is_success() => {
                Err(RevisionsError::Failed { resource: self.plural, reason: status.to_string() })
            }
            _ => match Limited::new(response.into_body(), MAX_BYTES).collect().await {
                Ok(body) => Ok(body.to_bytes().into()),
                Err(error) if error.is::<LengthLimitError>() => Err(self.too_many()),
                Err(error) => Err(self.failed(&*error)),
            },
        }
    }

    fn parsed<'b, T: Deserialize<'b>>(&self, body: &'b [u8]) -> Result<T, RevisionsError> {
        serde_json::from_slice(body).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &(dyn std::error::Error + 'static)) -> RevisionsError {
        RevisionsError::Failed { resource: self.plural, reason: root_cause(error) }
    }

    /// The revision in `json`, if it is one of `owner`.
    fn read(
        &self,
        json: &str,
        owner: &Owner<'_>,
        is_wanted: impl Fn(&RawValue) -> bool,
    ) -> Option<Revision> {
        let stored: Stored<'_> = serde_json::from_str(json).ok()?;
        let metadata = stored.metadata;
        let is_its = metadata.is_of(owner);
        let annotations = metadata.annotations;
        let annotated = || annotations.rollout.or(annotations.deployment)?.parse().ok();
        let number = stored.revision.or_else(annotated).unwrap_or_default();
        let template = stored.spec.template.or(stored.data.spec.template);
        is_its.then(|| Revision {
            kind: self.kind,
            name: metadata.name,
            number,
            created: metadata.creation_timestamp,
            pods: stored.revision.is_none().then_some(stored.status.replicas),
            ready: stored.status.ready_replicas,
            has_template: template.is_some_and(is_wanted),
        })
    }
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(rename = "columnDefinitions")]
    columns: Vec<Column>,
    rows: Option<Vec<Row>>,
}

#[derive(Deserialize)]
struct Column {
    name: Text,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
}

/// A revision or a pod.
#[derive(Deserialize)]
struct Stored<'a> {
    metadata: Metadata,
    #[serde(default, borrow)]
    spec: Template<'a>,
    #[serde(default, borrow)]
    data: Data<'a>,
    #[serde(default)]
    status: Status,
    /// The number of a ControllerRevision.
    revision: Option<i64>,
}

impl<'a> Stored<'a> {
    /// The pod in `json`, if it belongs to this revision of `owner` and is not being deleted.
    fn pod(json: &'a str, owner: &Owner<'_>, revision: &Revision) -> Option<Self> {
        let pod: Self = serde_json::from_str(json).ok()?;
        let hash = pod.metadata.labels.revision.as_deref()?;
        (pod.metadata.is_of(owner)
            && pod.metadata.deletion_timestamp.is_none()
            && revision.hash(owner.name) == Some(hash))
        .then_some(pod)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Text,
    namespace: Option<Text>,
    annotations: Annotations,
    creation_timestamp: Text,
    deletion_timestamp: Option<Text>,
    labels: PodLabels,
    owner_references: Vec<OwnerReference>,
}

impl Metadata {
    fn is_of(&self, owner: &Owner<'_>) -> bool {
        let namespace = self.namespace.as_deref().unwrap_or("default");
        namespace == owner.namespace
            && self.owner_references.iter().any(|reference| is_to(reference, owner))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodLabels {
    #[serde(rename = "controller-revision-hash")]
    revision: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "deployment.kubernetes.io/revision")]
    deployment: Option<Text>,
    /// The annotation of Argo Rollouts.
    #[serde(rename = "rollout.argoproj.io/revision")]
    rollout: Option<Text>,
}

/// Whether the reference is that of a controlled object to `owner`.
fn is_to(reference: &OwnerReference, owner: &Owner<'_>) -> bool {
    reference.controller == Some(true)
        && reference.uid == owner.uid
        && reference.name == owner.name
        && reference.kind == owner.kind.name()
        && reference.api_version == ObjectKind::Workload(owner.kind).api_version()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data<'a> {
    #[serde(borrow)]
    spec: Template<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    /// The phase of a pod.
    phase: Text,
    replicas: i64,
    ready_replicas: i64,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, Response};
    use futures_util::future::join_all;
    use kube::Config;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    const UID: &str = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";

    fn owner(kind: WorkloadKind) -> Owner<'static> {
        Owner { kind, namespace: "shop", name: "web", uid: UID, labels: Vec::new(), revision: None }
    }

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "web"}},
               "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]}})
    }

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    fn replica_set(name: &str, image: &str) -> Value {
        let mut template = template(image);
        template["metadata"]["labels"]["pod-template-hash"] = json!("6d4");
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
               "metadata": {"name": name, "namespace": "shop",
                            "annotations": {"deployment.kubernetes.io/revision": "3"},
                            "creationTimestamp": "2026-01-01T00:00:00Z",
                            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment",
                                                 "name": "web", "uid": UID, "controller": true}]},
               "spec": {"template": template}, "status": {"replicas": 2, "readyReplicas": 1}})
    }

    fn controller_revision(number: i64, namespace: &str, template: &Value) -> Value {
        json!({"metadata": {"name": format!("web-{number}"), "namespace": namespace,
                            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                                                 "name": "web", "uid": UID, "controller": true}]},
               "revision": number, "data": {"spec": {"template": template}}})
    }

    fn web(name: &str, has_template: bool) -> Revision {
        Revision {
            kind: "ReplicaSet",
            name: name.into(),
            number: 3,
            created: "2026-01-01T00:00:00Z".into(),
            pods: Some(2),
            ready: 1,
            has_template,
        }
    }

    #[test]
    fn revisions_in_files_are_those_of_the_owner_and_compared_with_the_template() {
        let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": "web-1", "namespace": "shop",
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet",
                                              "name": "web", "uid": UID, "controller": true}]},
            "revision": 7,
            "data": {"spec": {"template": {"$patch": "replace", "spec": {"hostNetwork": true}}}}});
        let mut others = vec![replica_set("web-1", "img:1"), revision];
        for (path, value) in [
            ("/uid", json!("1b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11")),
            ("/controller", json!(false)),
            ("/name", json!("other")),
            ("/kind", json!("Rollout")),
            ("/apiVersion", json!("extensions/v1beta1")),
        ] {
            let mut other = replica_set("other", "img:1");
            *other["metadata"]["ownerReferences"][0].pointer_mut(path).unwrap() = value;
            others.push(other);
        }
        let mut elsewhere = replica_set("other", "img:1");
        elsewhere["metadata"]["namespace"] = json!("bank");
        others.push(elsewhere);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": others});
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), list.to_string()).unwrap();
        fs::write(folder.path().join("c.yaml"), "kind: ReplicaSet\nspec: [").unwrap();
        let revisions = FileRevisions::read(&[folder.path().to_owned(), "-".into()]);

        let found = |kind, template: &Value| revisions.find(&owner(kind), &raw(template));
        let deployment = WorkloadKind::Deployment;
        assert_eq!(found(deployment, &template("img:1")), [web("web-1", true)]);
        assert_eq!(found(deployment, &template("img:2")), [web("web-1", false)]);
        let of_set = found(WorkloadKind::StatefulSet, &json!({"spec": {"hostNetwork": true}}));
        assert_eq!(of_set.len(), 1);
        assert_eq!((of_set[0].number, of_set[0].has_template), (7, true));
        assert_eq!(found(WorkloadKind::DaemonSet, &template("img:1")), []);
        assert_eq!(found(WorkloadKind::Job, &template("img:1")), []);
    }

    /// The status of a DaemonSet says how many pods are not of the newest revision, but not of
    /// which they are.
    #[test]
    fn in_files_the_running_pods_of_a_daemon_sets_revision_are_counted() {
        let revisions = [1, 2, 3].map(|number| {
            let template = template(&format!("img:{number}"));
            let mut revision = controller_revision(number, "shop", &template);
            revision["kind"] = json!("ControllerRevision");
            revision
        });
        for (number, phase, expected) in
            [("1", "Running", 1), ("1", "Pending", 0), ("2", "Running", 0)]
        {
            let pod = json!({"kind": "Pod", "status": {"phase": phase}, "metadata": {
                "name": "web-x", "namespace": "shop",
                "labels": {"controller-revision-hash": number},
                "ownerReferences": revisions[0]["metadata"]["ownerReferences"]}});
            let items = [&revisions[..], &[pod]].concat();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("a.yaml"), list.to_string()).unwrap();
            let files = FileRevisions::read(&[folder.path().to_owned()]);
            let found = files.find(&owner(WorkloadKind::DaemonSet), &raw(&template("img:1")));
            let counted: Vec<_> = found.iter().map(|revision| revision.pods).collect();
            assert_eq!(counted, [Some(expected), None, None], "{number} {phase}");
        }
    }

    /// An API server that has one ReplicaSet with pods, in the second of two pages, and a tenant
    /// with 4,000 ReplicaSets.
    async fn api_server(request: Request<Body>, asked: Arc<AtomicUsize>) -> Response<Body> {
        asked.fetch_add(1, Ordering::Relaxed);
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let answer = |status, body: Value| {
            let response = Response::builder().status(status);
            response.body(Body::from(body.to_string())).unwrap()
        };
        let table = |sets: &[(String, i64)], next: &str| {
            let row = |(name, pods): &(String, i64)| json!({"cells": [name, 1, pods]});
            let rows = sets.iter().map(row);
            let names = ["Name", "Desired", "Current"].map(|name| json!({"name": name}));
            let body = json!({"kind": "Table", "metadata": {"continue": next},
                "columnDefinitions": names, "rows": rows.collect::<Vec<_>>()});
            answer(200, body)
        };
        if path == "/api/v1/namespaces/shop/pods" {
            return answer(200, json!({"items": []}));
        }
        let parts: Vec<&str> = path.split('/').collect();
        let ["", "apis", "apps", "v1", "namespaces", namespace, resource] = parts[..] else {
            return answer(404, json!({}));
        };
        if resource == "controllerrevisions" {
            return match query.split("fieldSelector=metadata.name%3D").nth(1) {
                Some(named) => {
                    let number: i64 = named.split(['-', '&']).nth(1).unwrap().parse().unwrap();
                    let image = format!("img:{number}");
                    let revision = controller_revision(number, namespace, &template(&image));
                    answer(200, json!({"items": [revision]}))
                }
                None => {
                    let row = |number: i64| json!({"cells": [format!("web-{number}"), number]});
                    let names = ["Name", "Revision"].map(|name| json!({"name": name}));
                    let rows: Vec<Value> = (1..=40).map(row).collect();
                    answer(200, json!({"columnDefinitions": names, "rows": rows}))
                }
            };
        }
        let of_namespace = |name: &str, image| {
            let mut set = replica_set(name, image);
            set["metadata"]["namespace"] = json!(namespace);
            set
        };
        if let Some(named) = query.split("fieldSelector=metadata.name%3D").nth(1) {
            let items = match named.split('&').next() {
                Some("web-1") => json!([of_namespace("web-1", "img:1")]),
                Some(name) => json!([of_namespace(name, "img")]),
                None => json!([]),
            };
            return answer(200, json!({"kind": "ReplicaSetList", "items": items}));
        }
        let accept = request.headers()["accept"].to_str().unwrap();
        assert!(accept.contains("as=Table"), "{accept}");
        assert!(query.contains("includeObject=None"), "{query}");
        assert!(query.contains("labelSelector=app%3Dweb"), "{query}");
        match namespace {
            "forbidden" => answer(403, json!({"kind": "Status", "code": 403})),
            "silent" => std::future::pending().await,
            "tenant" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let token = query.split("continue=").nth(1).unwrap_or("0");
                let from: usize = token.split('&').next().unwrap().parse().unwrap();
                let next = from + 500;
                let pods = |at| i64::from(at == 1);
                let sets = (from..next).map(|at| (format!("web-{at}"), pods(at)));
                let more = (next < 4_000).then(|| next.to_string());
                table(&sets.collect::<Vec<_>>(), &more.unwrap_or_default())
            }
            "endless" => table(&[("web-1".to_owned(), 1)], "next"),
            "crowded" => table(&vec![("web-1".to_owned(), 1); MAX_READ + 1], "next"),
            "large" => answer(200, json!("x".repeat(MAX_BYTES))),
            _ if query.contains("continue=next") => {
                table(&[("web-2".to_owned(), 0), ("web-1".to_owned(), 2)], "")
            }
            _ => table(&[], "next"),
        }
    }

    #[tokio::test]
    async fn revisions_in_a_cluster_are_listed_in_time_or_an_error_says_why_not() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let router =
            Router::new().fallback(move |request| api_server(request, Arc::clone(&counted)));
        let served = axum::serve(listener, router);
        let serving = tokio::spawn(async { served.await });
        let mut config = Config::new(url.parse().unwrap());
        config.default_retry = false;
        let client = crate::connect::client(config).unwrap();
        let revisions = LiveRevisions::default();
        let find = async |namespace, within| {
            let owner = Owner {
                namespace,
                labels: vec![("app", "web")],
                ..owner(WorkloadKind::Deployment)
            };
            let asker = Asker { namespace, stranger: None };
            let template = raw(&template("img:1"));
            let deadline = Instant::now() + within;
            let found = revisions.find(&client, &owner, &template, asker, deadline);
            found.await.map_err(|error| error.to_string())
        };
        let long = Duration::from_secs(60);
        assert_eq!(find("shop", long).await, Ok(vec![web("web-1", true)]));
        let forbidden = "the guard may not list replicasets".to_owned();
        assert_eq!(find("forbidden", long).await, Err(forbidden));
        let late = Err("the API server did not list replicasets in time".to_owned());
        assert_eq!(find("silent", Duration::ZERO).await, late);
        assert_eq!(find("../kube-system", long).await, Ok(vec![]));

        let too_many =
            "there are more replicasets with its labels, or larger ones, than the guard reads";
        assert_eq!(find("large", long).await, Err(too_many.to_owned()));
        // A tenant may have many ReplicaSets, but few pages are listed and few revisions are read.
        let count = async |namespace| {
            let before = asked.load(Ordering::Relaxed);
            let found = find(namespace, long).await;
            (found, asked.load(Ordering::Relaxed) - before)
        };
        assert_eq!(count("endless").await, (Err(too_many.to_owned()), MAX_PAGES));
        assert_eq!(count("crowded").await, (Err(too_many.to_owned()), 1));
        let (of_tenant, requests) = count("tenant").await;
        assert_eq!((of_tenant.unwrap().len(), requests), (1, 8 + 1));

        // The newest revisions of a DaemonSet are read until one has the template.
        for (number, found, read) in
            [(40, Some(40), 3), (39, Some(39), 3), (20, Some(20), 21), (9, None, MAX_READ)]
        {
            let before = asked.load(Ordering::Relaxed);
            let owner = owner(WorkloadKind::DaemonSet);
            let asker = Asker { namespace: "shop", stranger: None };
            let wanted = raw(&template(&format!("img:{number}")));
            let deadline = Instant::now() + long;
            let all = revisions.find(&client, &owner, &wanted, asker, deadline).await;
            let newest = all.iter().flatten().find(|revision| revision.has_template);
            assert_eq!(newest.map(|revision| revision.number), found, "{number}");
            assert_eq!(all.is_err(), found.is_none(), "{number}");
            let pods = usize::from(found.is_some());
            assert_eq!(asked.load(Ordering::Relaxed) - before, 1 + read + pods, "{number}");
        }

        // They do not keep others waiting either, although they take every turn that they get.
        let all = Duration::from_secs(5);
        let many = join_all((0..16).map(|_| find("tenant", all)));
        let silent = join_all((0..16).map(|_| find("silent", all)));
        let other = async {
            tokio::task::yield_now().await;
            let started = Instant::now();
            let found = find("shop", long).await;
            (found, started.elapsed() < all / 2)
        };
        let (_, silent, (found, in_time)) = tokio::join!(many, silent, other);
        assert!(silent.iter().all(|result| *result == late));
        assert_eq!(found, Ok(vec![web("web-1", true)]));
        assert!(in_time);

        serving.abort();
    }
}
