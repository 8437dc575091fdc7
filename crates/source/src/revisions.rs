//! The revisions of a workload: an update back to one whose pods run is a rollback.
//!
//! The templates of revisions are no facts that the view keeps: they are compared whole,
//! and only where an update would be denied. They are requested then, or read from files.

use std::io::empty;
use std::path::{Path, PathBuf};

use engine::model::Text;
use engine::model::workload::WorkloadKind;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client};
use manifest::find::{Exclude, find};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::resource::RawObject;
use super::watch::root_cause;

/// Lists at the same time; further ones wait their turn. Denials are rare.
const AT_ONCE: usize = 4;

/// Revisions in one page. Kubernetes keeps ten of each workload, and the selector of one
/// workload may match those of others.
const PAGE: u32 = 50;

/// The label that the Deployment controller adds to the template of a ReplicaSet.
const HASH: &str = "pod-template-hash";

/// The workload that is updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its uid, as text.
    pub uid: &'a str,
    /// Labels that its revisions have; none where that is not known.
    pub labels: Vec<(&'a str, &'a str)>,
}

/// The revision that has a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// `ReplicaSet` or `ControllerRevision`.
    pub kind: &'static str,
    /// Its name.
    pub name: Text,
    /// How many of its pods are ready; a ControllerRevision does not say.
    pub ready: Option<i64>,
}

/// Why the revisions could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionsError {
    /// The account has no right to list them.
    #[error("the guard may not list {resource}")]
    Forbidden {
        /// The resource.
        resource: &'static str,
    },
    /// The API server said something else.
    #[error("{resource} cannot be listed: {reason}")]
    Failed {
        /// The resource.
        resource: &'static str,
        /// What it said.
        reason: String,
    },
    /// It did not answer in time.
    #[error("the API server did not list {resource} in time")]
    Late {
        /// The resource.
        resource: &'static str,
    },
}

/// Asks an API server for revisions.
#[derive(Debug)]
pub struct LiveRevisions(Semaphore);

impl Default for LiveRevisions {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl LiveRevisions {
    /// The revisions of `owner` with that template, as the API server has them now.
    ///
    /// # Errors
    /// When it does not say so by `deadline`.
    pub async fn find(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        template: &Value,
        deadline: Instant,
    ) -> Result<Vec<Revision>, RevisionsError> {
        let Some(resource) = Resource::of(owner.kind) else {
            return Ok(Vec::new());
        };
        let list = async {
            // It is never closed, so this never fails.
            let _turn = self.0.acquire().await.ok();
            resource.list(client, owner, template).await
        };
        let plural = resource.plural;
        match timeout_at(deadline, list).await {
            Ok(found) => found.map_err(|error| match error {
                kube::Error::Api(status) if status.code == 403 => {
                    RevisionsError::Forbidden { resource: plural }
                }
                error => RevisionsError::Failed {
                    resource: plural,
                    reason: root_cause(&error),
                },
            }),
            Err(_) => Err(RevisionsError::Late { resource: plural }),
        }
    }
}

/// Revisions in files that stand for a cluster.
#[derive(Debug, Default)]
pub struct FileRevisions(Vec<(&'static Resource, StoredRevision)>);

impl FileRevisions {
    /// Those in the files and directories `paths`, which were read for their facts before;
    /// what comes by standard input is gone by then.
    #[must_use]
    pub fn read(paths: &[PathBuf]) -> Self {
        let paths: Vec<PathBuf> = paths
            .iter()
            .filter(|path| path.as_path() != Path::new("-"))
            .cloned()
            .collect();
        let found = find(&paths, &Exclude::nothing(), &mut empty());
        let texts = found.sources.iter().filter_map(|source| source.text().ok());
        let mut revisions = Vec::new();
        for text in texts {
            if !RESOURCES.iter().any(|it| text.contains(it.kind)) {
                continue;
            }
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_default();
            for document in documents {
                match document.get("items").and_then(Value::as_array) {
                    Some(items) => revisions.extend(items.iter().filter_map(revision)),
                    None => revisions.extend(revision(&document)),
                }
            }
        }
        Self(revisions)
    }

    /// The revisions of `owner` with that template.
    #[must_use]
    pub fn find(&self, owner: &Owner<'_>, template: &Value) -> Vec<Revision> {
        let wanted = normalised(template.clone());
        let revisions = self.0.iter().filter(|(resource, stored)| {
            resource.owners.contains(&owner.kind)
                && stored.metadata.namespace.as_deref().unwrap_or("default") == owner.namespace
        });
        revisions
            .filter_map(|(resource, stored)| stored.clone().matching(resource, owner, &wanted))
            .collect()
    }
}

fn revision(document: &Value) -> Option<(&'static Resource, StoredRevision)> {
    let kind = document.get("kind")?.as_str()?;
    let resource = RESOURCES.iter().find(|resource| resource.kind == kind)?;
    let stored = StoredRevision::deserialize(document).ok()?;
    Some((resource, stored))
}

/// What revisions are kept in.
#[derive(Debug)]
struct Resource {
    kind: &'static str,
    plural: &'static str,
    owners: &'static [WorkloadKind],
}

static RESOURCES: [Resource; 2] = [
    Resource {
        kind: "ReplicaSet",
        plural: "replicasets",
        owners: &[WorkloadKind::Deployment],
    },
    Resource {
        kind: "ControllerRevision",
        plural: "controllerrevisions",
        owners: &[WorkloadKind::StatefulSet, WorkloadKind::DaemonSet],
    },
];

impl Resource {
    fn of(owner: WorkloadKind) -> Option<&'static Self> {
        RESOURCES.iter().find(|it| it.owners.contains(&owner))
    }

    async fn list(
        &self,
        client: &Client,
        owner: &Owner<'_>,
        template: &Value,
    ) -> Result<Vec<Revision>, kube::Error> {
        let resource = ApiResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            api_version: "apps/v1".to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        };
        let api: Api<RawObject> = Api::namespaced_with(client.clone(), owner.namespace, &resource);
        let labels = owner
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let selector = labels.collect::<Vec<_>>().join(",");
        let mut parameters = ListParams::default().limit(PAGE);
        if !selector.is_empty() {
            parameters = parameters.labels(&selector);
        }
        let wanted = normalised(template.clone());
        let mut revisions = Vec::new();
        loop {
            let page = api.list(&parameters).await?;
            let stored = page.items.iter().filter_map(|raw| raw.parse().ok());
            revisions.extend(
                stored.filter_map(|stored: StoredRevision| stored.matching(self, owner, &wanted)),
            );
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(revisions),
            }
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct StoredRevision {
    metadata: Metadata,
    spec: Template,
    data: Data,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Text,
    namespace: Option<Text>,
    owner_references: Vec<OwnerReference>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OwnerReference {
    uid: Text,
    controller: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    template: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    spec: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    ready_replicas: i64,
}

impl StoredRevision {
    /// The revision, where it is one of `owner` and its template is `wanted`.
    fn matching(self, resource: &Resource, owner: &Owner<'_>, wanted: &Value) -> Option<Revision> {
        let mut owners = self.metadata.owner_references.iter();
        let is_its = owners.any(|it| it.controller == Some(true) && it.uid == owner.uid);
        let (template, ready) = match resource.owners.contains(&WorkloadKind::Deployment) {
            true => (self.spec.template, Some(self.status.ready_replicas)),
            false => (self.data.spec.template, None),
        };
        (is_its && normalised(template) == *wanted).then_some(Revision {
            kind: resource.kind,
            name: self.metadata.name,
            ready,
        })
    }
}

/// A template without what controllers add to it, and without what says nothing: to
/// Kubernetes, a list that is empty is one that is not there (`equality.Semantic`).
#[must_use]
pub fn normalised(mut template: Value) -> Value {
    if let Some(labels) = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove(HASH);
    }
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    drop_empty(&mut template);
    template
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(drop_empty);
            fields.retain(|_, value| {
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Response, Uri};
    use kube::Config;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    const UID: &str = "0b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11";

    fn owner(kind: WorkloadKind) -> Owner<'static> {
        Owner {
            kind,
            namespace: "shop",
            uid: UID,
            labels: Vec::new(),
        }
    }

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "web"}},
               "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]}})
    }

    fn replica_set(name: &str, uid: &str, image: &str, ready: i64) -> Value {
        let mut template = template(image);
        template["metadata"]["labels"][HASH] = json!("6d4");
        template["metadata"]["creationTimestamp"] = Value::Null;
        template["spec"]["tolerations"] = json!([]);
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
               "metadata": {"name": name, "namespace": "shop",
                            "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": uid, "controller": true}]},
               "spec": {"template": template}, "status": {"readyReplicas": ready}})
    }

    #[test]
    fn revisions_in_files_are_found_by_owner_and_template() {
        let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": "db-1", "namespace": "shop",
                         "ownerReferences": [{"uid": UID, "controller": true}]},
            "data": {"spec": {"template": {"$patch": "replace", "spec": {"hostNetwork": true}}}}});
        let list = json!({"apiVersion": "v1", "kind": "List",
            "items": [replica_set("web-1", UID, "img:1", 2), revision]});
        let folder = tempfile::tempdir().unwrap();
        let other = replica_set(
            "other-1",
            "1b6d9a4e-3a5c-4b8e-9a43-6f1f0e6c2d11",
            "img:2",
            1,
        );
        fs::write(folder.path().join("a.yaml"), list.to_string()).unwrap();
        fs::write(folder.path().join("b.json"), other.to_string()).unwrap();
        fs::write(folder.path().join("c.yaml"), "kind: ReplicaSet\nspec: [").unwrap();
        let revisions = FileRevisions::read(&[folder.path().to_owned(), "-".into()]);

        let named = |kind, template: &Value| -> Vec<(String, Option<i64>)> {
            let found = revisions.find(&owner(kind), template);
            let found = found.into_iter();
            found.map(|it| (it.name.to_string(), it.ready)).collect()
        };
        let deployment = WorkloadKind::Deployment;
        let web = vec![("web-1".to_owned(), Some(2))];
        assert_eq!(named(deployment, &template("img:1")), web);
        assert_eq!(named(deployment, &template("img:2")), []);
        let of_set = json!({"spec": {"hostNetwork": true}});
        assert_eq!(
            named(WorkloadKind::StatefulSet, &of_set),
            [("db-1".to_owned(), None)]
        );
        assert_eq!(named(deployment, &of_set), []);
        assert_eq!(named(WorkloadKind::Job, &of_set), []);
    }

    /// An API server of one ReplicaSet in the second of two pages.
    async fn api_server(uri: Uri) -> Response<Body> {
        let path = uri.path();
        let query = uri.query().unwrap_or_default();
        let answer = |status, body: Value| {
            let response = Response::builder().status(status);
            response.body(Body::from(body.to_string())).unwrap()
        };
        let list = |items, next| {
            answer(
                200,
                json!({"apiVersion": "apps/v1", "kind": "ReplicaSetList",
                "metadata": {"continue": next}, "items": items}),
            )
        };
        if path.contains("/forbidden/") {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "no", "reason": "Forbidden", "code": 403});
            return answer(403, status);
        }
        if path.contains("/silent/") {
            std::future::pending::<()>().await;
        }
        assert_eq!(path, "/apis/apps/v1/namespaces/shop/replicasets");
        assert!(query.contains("labelSelector=app%3Dweb"), "{query}");
        match query.contains("continue=next") {
            false => list(json!([]), "next"),
            true => list(json!([replica_set("web-1", UID, "img:1", 2)]), ""),
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
        let find = async |namespace, seconds| {
            let owner = Owner {
                namespace,
                labels: vec![("app", "web")],
                ..owner(WorkloadKind::Deployment)
            };
            let deadline = Instant::now() + Duration::from_secs(seconds);
            let found = revisions
                .find(&client, &owner, &template("img:1"), deadline)
                .await;
            found.map_err(|error| error.to_string())
        };
        let web = Revision {
            kind: "ReplicaSet",
            name: "web-1".into(),
            ready: Some(2),
        };
        assert_eq!(find("shop", 60).await, Ok(vec![web]));
        let forbidden = "the guard may not list replicasets".to_owned();
        assert_eq!(find("forbidden", 60).await, Err(forbidden));
        let late = "the API server did not list replicasets in time".to_owned();
        assert_eq!(find("silent", 0).await, Err(late));
        serving.abort();
    }

    #[test]
    fn an_empty_object_says_something_and_an_empty_list_does_not() {
        let with = |volume: Value| normalised(json!({"spec": {"volumes": [volume], "x": []}}));
        assert_ne!(with(json!({"emptyDir": {}})), with(json!({})));
        assert_eq!(with(json!({"a": null})), with(json!({})));
    }
}
