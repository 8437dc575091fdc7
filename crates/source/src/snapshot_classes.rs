//! VolumeSnapshotClasses, which only some clusters serve.

use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client, Config};
use tokio::time::{Instant, timeout_at};

use super::connect::{ConnectError, client};
use super::resource::RawObject;
use engine::model::snapshot_class::SnapshotClass;

/// The VolumeSnapshotClasses of a cluster, empty if it does not serve them; `None` if they
/// could not be read by `deadline`.
///
/// # Errors
/// When the configuration has no usable certificates, keys or proxies.
pub async fn snapshot_classes(
    config: Config,
    deadline: Instant,
) -> Result<Option<Vec<SnapshotClass>>, ConnectError> {
    let client = client(config)?;
    let listed = timeout_at(deadline, list(client)).await;
    Ok(match listed {
        Ok(Ok(classes)) => Some(classes),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Some(Vec::new()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "The VolumeSnapshotClasses could not be read.");
            None
        }
        Err(_) => None,
    })
}

async fn list(client: Client) -> Result<Vec<SnapshotClass>, kube::Error> {
    let resource = ApiResource {
        group: "snapshot.storage.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "snapshot.storage.k8s.io/v1".to_owned(),
        kind: "VolumeSnapshotClass".to_owned(),
        plural: "volumesnapshotclasses".to_owned(),
    };
    let api: Api<RawObject> = Api::all_with(client, &resource);
    let listed = api.list(&ListParams::default()).await?;
    let classes = listed.items.iter();
    Ok(classes.filter_map(|raw| raw.parse().ok()).collect())
}
