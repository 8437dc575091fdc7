//! The revisions of a workload. An update back to a revision whose pods run is a rollback.
//!
//! The view does not keep revisions: only their templates matter, and only if an update would be
//! denied. They are requested at that point, or read from files.

use std::io::empty;
use std::path::PathBuf;

use engine::model::Text;
use engine::model::metadata::is_name;
use engine::model::object::ObjectKind;
use engine::model::workload::WorkloadKind;
use http::StatusCode;
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

use super::turns::{Asker, Turns};
use super::watch::root_cause;

/// The number of concurrent lists, in all and for one namespace; further ones wait their turn.
/// Denials are rare.
const AT_ONCE: usize = 4;
const OF_A_NAMESPACE: usize = 1;

/// The largest number of revisions in a list, and its largest size in bytes. Kubernetes keeps ten
/// revisions of each workload; all concurrent lists together take 32 MiB.
const MOST: u32 = 50;
const MAX_BYTES: usize = 8 << 20;

/// The labels that the controllers of Deployments and of Argo Rollouts add to the template of a
/// ReplicaSet.
const HASHES: [&str; 2] = ["pod-template-hash", "rollouts-pod-template-hash"];

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
}

/// A revision of a workload.
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
    /// The number of its pods and of those that are ready, which only a ReplicaSet reports.
    pub pods: i64,
    /// The number of these pods that are ready.
    pub ready: i64,
    /// Whether its template is the requested one.
    pub has_template: bool,
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
    #[error("its labels select more {0}, or larger ones, than the guard reads")]
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
        let list = resource.list(client, owner, template);
        timeout_at(deadline, list).await.unwrap_or(Err(late))
    }
}

/// Revisions in files that stand for a cluster.
#[derive(Debug, Default)]
pub struct FileRevisions {
    /// Revisions as JSON.
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
        let wanted = normalized(template);
        self.objects
            .iter()
            .filter(|(resource, _)| resource.owners.contains(&owner.kind))
            .filter_map(|(resource, json)| resource.read(json, owner, wanted.as_ref()))
            .collect()
    }
}

fn revision(document: &Value) -> Option<(&'static Resource, String)> {
    let kind = document.get("kind")?.as_str()?;
    let resource = RESOURCES.iter().find(|resource| resource.kind == kind)?;
    Some((resource, document.to_string()))
}

/// Whether two templates are the same to Kubernetes.
pub fn is_same_template(a: &RawValue, b: &RawValue) -> bool {
    normalized(a) == normalized(b)
}

/// A template without the fields that controllers add and without those that are null or an empty
/// list, which Kubernetes treats as missing (`equality.Semantic`). `None` if it is not JSON.
fn normalized(template: &RawValue) -> Option<Value> {
    let mut template: Value = serde_json::from_str(template.get()).ok()?;
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.retain(|key, _| !HASHES.contains(&key.as_str()));
    }
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    drop_missing(&mut template);
    Some(template)
}

fn drop_missing(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| {
                drop_missing(field);
                !field.is_null() && field.as_array().is_none_or(|items| !items.is_empty())
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_missing),
        _ => {}
    }
}

/// A resource that holds revisions.
#[derive(Debug)]
struct Resource {
    kind: &'static str,
    plural: &'static str,
    owners: &'static [WorkloadKind],
}

static RESOURCES: [Resource; 2] = [
    Resource { kind: "ReplicaSet", plural: "replicasets", owners: &[WorkloadKind::Deployment] },
    Resource {
        kind: "ControllerRevision",
        plural: "controllerrevisions",
        owners: &[WorkloadKind::StatefulSet, WorkloadKind::DaemonSet],
    },
];

impl Resource {
    /// All revisions with the owner's labels. No selector finds those of an owner.
    async fn list(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        template: &RawValue,
    ) -> Result<Vec<Revision>, RevisionsError> {
        let labels = owner.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let selector = labels.collect::<Vec<_>>().join(",");
        let mut parameters = ListParams::default().limit(MOST);
        parameters.label_selector = Some(selector).filter(|selector| !selector.is_empty());
        let path = format!("/apis/apps/v1/namespaces/{}/{}", owner.namespace, self.plural);
        let request = Request::new(path).list(&parameters).map_err(|error| self.failed(&error))?;
        let response =
            client.send(request.map(Body::from)).await.map_err(|error| self.failed(&error))?;
        let body = match response.status() {
            StatusCode::FORBIDDEN => return Err(RevisionsError::Forbidden(self.plural)),
            status if !status.is_success() => {
                let reason = status.to_string();
                return Err(RevisionsError::Failed { resource: self.plural, reason });
            }
            _ => match Limited::new(response.into_body(), MAX_BYTES).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) if error.is::<LengthLimitError>() => return Err(self.too_many()),
                Err(error) => return Err(self.failed(&*error)),
            },
        };
        let list: List<'_> = serde_json::from_slice(&body).map_err(|error| self.failed(&error))?;
        if list.metadata.continue_.is_some_and(|token| !token.is_empty()) {
            return Err(self.too_many());
        }
        let wanted = normalized(template);
        let items = list.items.iter();
        Ok(items.filter_map(|item| self.read(item.get(), owner, wanted.as_ref())).collect())
    }

    const fn too_many(&self) -> RevisionsError {
        RevisionsError::TooMany(self.plural)
    }

    fn failed(&self, error: &(dyn std::error::Error + 'static)) -> RevisionsError {
        RevisionsError::Failed { resource: self.plural, reason: root_cause(error) }
    }

    /// The revision in `json`, if it is one of `owner`.
    fn read(&self, json: &str, owner: &Owner<'_>, wanted: Option<&Value>) -> Option<Revision> {
        let stored: Stored<'_> = serde_json::from_str(json).ok()?;
        let metadata = stored.metadata;
        let is_its = metadata.is_of(owner);
        let annotated = || metadata.annotations.deployment.as_deref()?.parse().ok();
        let number = stored.revision.or_else(annotated).unwrap_or_default();
        let template = stored.spec.template.or(stored.data.spec.template);
        is_its.then(|| Revision {
            kind: self.kind,
            name: metadata.name,
            number,
            created: metadata.creation_timestamp,
            pods: stored.status.replicas,
            ready: stored.status.ready_replicas,
            has_template: template.is_some_and(|own| normalized(own).as_ref() == wanted),
        })
    }
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// A revision.
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

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Text,
    namespace: Option<Text>,
    annotations: Annotations,
    creation_timestamp: Text,
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
struct Annotations {
    #[serde(rename = "deployment.kubernetes.io/revision")]
    deployment: Option<Text>,
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
    replicas: i64,
    ready_replicas: i64,
}

#[cfg(test)]
mod tests {
    use std::fs;
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
        Owner { kind, namespace: "shop", name: "web", uid: UID, labels: Vec::new() }
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

    fn web(name: &str, has_template: bool) -> Revision {
        Revision {
            kind: "ReplicaSet",
            name: name.into(),
            number: 3,
            created: "2026-01-01T00:00:00Z".into(),
            pods: 2,
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

    fn are_same(a: &Value, b: &Value) -> bool {
        is_same_template(&raw(a), &raw(b))
    }

    #[test]
    fn what_controllers_add_and_what_says_nothing_makes_no_difference() {
        let written = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "ports": [1, 2], "resources": {}}]}});
        let mut made = json!({"$patch": "replace", "spec": {}, "metadata": {
            "creationTimestamp": null, "labels": {HASHES[0]: "6d4", HASHES[1]: "6d4", "app": "web"}}});
        made["spec"] = json!({"tolerations": [], "hostNetwork": null,
            "containers": [{"resources": {}, "ports": [1, 2], "name": "c"}]});
        assert!(are_same(&written, &made));
        for (path, value) in [
            ("/spec/containers/0/ports", json!([2, 1])),
            ("/spec/containers/0/ports/0", json!("1")),
            ("/spec/containers/0/resources", Value::Null),
            ("/spec/containers/0/name", json!("d")),
            ("/metadata/labels/app", json!("api")),
            ("/spec", json!({HASHES[0]: "6d4", "containers": written["spec"]["containers"]})),
        ] {
            let mut other = written.clone();
            *other.pointer_mut(path).unwrap() = value;
            assert!(!are_same(&written, &other), "{path}");
        }
        let with = |volume: Value| json!({"spec": {"volumes": [volume], "x": []}});
        assert!(!are_same(&with(json!({"emptyDir": {}})), &with(json!({}))));
        assert!(are_same(&with(json!({"a": null})), &with(json!({}))));
    }

    /// An API server with a ReplicaSet in most namespaces.
    async fn api_server(request: Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let answer = |status, body: Value| {
            let response = Response::builder().status(status);
            response.body(Body::from(body.to_string())).unwrap()
        };
        let parts: Vec<&str> = path.split('/').collect();
        let ["", "apis", "apps", "v1", "namespaces", namespace, "replicasets"] = parts[..] else {
            return answer(404, json!({}));
        };
        assert!(query.contains("labelSelector=app%3Dweb"), "{query}");
        assert!(query.contains("limit=50"), "{query}");
        let mut set = replica_set("web-1", "img:1");
        set["metadata"]["namespace"] = json!(namespace);
        match namespace {
            "forbidden" => answer(403, json!({"kind": "Status", "code": 403})),
            "silent" => std::future::pending().await,
            "crowded" => answer(200, json!({"metadata": {"continue": "next"}, "items": [set]})),
            "large" => answer(200, json!("x".repeat(MAX_BYTES))),
            _ => answer(200, json!({"metadata": {"continue": ""}, "items": [set, "odd"]})),
        }
    }

    #[tokio::test]
    async fn revisions_in_a_cluster_are_listed_in_time_or_an_error_says_why_not() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let served = axum::serve(listener, Router::new().fallback(api_server));
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
        for namespace in ["large", "crowded"] {
            let too_many =
                "its labels select more replicasets, or larger ones, than the guard reads";
            assert_eq!(find(namespace, long).await, Err(too_many.to_owned()));
        }

        // A tenant that takes every turn that it gets does not keep others waiting.
        let all = Duration::from_secs(5);
        let silent = join_all((0..16).map(|_| find("silent", all)));
        let other = async {
            tokio::task::yield_now().await;
            let started = Instant::now();
            let found = find("shop", long).await;
            (found, started.elapsed() < all / 2)
        };
        let (slow, (found, in_time)) = tokio::join!(silent, other);
        assert!(slow.iter().all(|result| *result == late));
        assert_eq!(found, Ok(vec![web("web-1", true)]));
        assert!(in_time);

        serving.abort();
    }
}
