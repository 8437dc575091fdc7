//! Facts about a live cluster, read once.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::view::connect::{Access, ConnectError};
use crate::view::index::Index;
use crate::view::live::{LiveView, SyncError};

/// How long a cluster may take to list all that is asked for.
const DEADLINE: Duration = Duration::from_secs(60);

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

/// Everything that is known of the cluster behind the kubeconfig's `context`;
/// `None` means the current one.
pub(super) fn read(context: Option<&str>) -> Result<Index, ClusterError> {
    let access = Access {
        context: context.map(str::to_owned),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let live = LiveView::with_config(access.config().await?, |_| true);
        live.synced(Instant::now() + DEADLINE).await?;
        Ok(live.into_index())
    })
}
