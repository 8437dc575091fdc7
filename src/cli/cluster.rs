//! Facts about a live cluster, read once.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::model::object::ObjectKind;
use crate::view::connect::{Access, ConnectError, reach};
use crate::view::live::{LiveView, SyncError};

/// How long a cluster may take for its first answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a cluster may take to list all that is asked for.
const LISTS: Duration = Duration::from_secs(60);

/// Why a cluster could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// It is not known which cluster, or how to reach it.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It did not answer in full.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// No runtime.
    #[error("The program could not start its threads: {0}.")]
    Runtime(#[from] io::Error),
}

/// What is known of the cluster behind the kubeconfig's `context`; `None` means
/// the current one. Only the `kinds` that are asked for are read, so that no more
/// rights are needed than for those.
pub(super) fn read(
    context: Option<&str>,
    kinds: impl Fn(ObjectKind) -> bool,
) -> Result<Cluster, ClusterError> {
    let access = Access {
        context: context.map(str::to_owned),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = access.config().await?;
        reach(&config, Instant::now() + ANSWER).await?;
        let live = LiveView::with_config(config, kinds);
        live.synced(Instant::now() + LISTS).await?;
        for status in live.statuses() {
            if status.malformed > 0 {
                eprintln!(
                    "Of the cluster's {}, {} could not be read and are left out.",
                    status.resource, status.malformed
                );
            }
        }
        Ok(live.into_cluster())
    })
}
