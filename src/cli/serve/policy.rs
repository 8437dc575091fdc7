//! The policy in use: the built-in one, or that of a file, which is followed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use super::options::ServeOptions;
use engine::verdict::EffectivePolicy;
use source::policy_file::{self, PolicyFile, PolicyFileError};
use webhook::server::{HealthSource, HealthState, Metrics, Readiness};

/// The time between two comparisons of the policy file with the policy in use. A kubelet needs up
/// to a minute to change a mounted ConfigMap, so this adds little.
const INTERVAL: Duration = Duration::from_secs(1);

/// The name of the condition on the policy.
const NAME: &str = "policy";

/// The policy in use, and its file.
pub(super) struct CurrentPolicy {
    pub(super) effective: Arc<ArcSwap<EffectivePolicy>>,
    file: Option<PolicyFile>,
    /// The readiness condition on the file. An error itself goes to the log only: it may quote
    /// names from the file.
    condition: Arc<ArcSwap<Readiness>>,
}

impl CurrentPolicy {
    /// Opens the file that the options name. A file that cannot be used must not keep the guard
    /// from starting: it may have been wrong for a while, and a Pod that moves would then leave the
    /// cluster unguarded. The guard must not refuse what the file would have allowed, either: until
    /// the file is valid there are warnings only, unless the options say otherwise.
    pub(super) fn open(options: &ServeOptions, metrics: &Metrics) -> Result<Self, PolicyFileError> {
        let mut condition = good();
        let (file, effective) = match &options.config {
            Some(path) => {
                let (file, effective) = PolicyFile::open(path.clone());
                let effective = match effective {
                    Err(error) if !options.policy_required => {
                        tracing::error!(%error, "The policy file cannot be used; until it can, nothing is refused.");
                        condition = Readiness::degraded(
                            NAME,
                            "The policy file cannot be used; the log says why. Until it can, there are warnings only.",
                        );
                        metrics.policy_reloaded(false);
                        policy_file::warn_only()?
                    }
                    effective => {
                        metrics.policy_read.set(Timestamp::now());
                        effective?
                    }
                };
                (Some(file), effective)
            }
            None => (None, policy_file::effective(None)?),
        };
        Ok(Self {
            effective: Arc::new(ArcSwap::from_pointee(effective)),
            file,
            condition: Arc::new(ArcSwap::from_pointee(condition)),
        })
    }

    /// The readiness condition on the file; `None` without a file.
    pub(super) fn health(&self) -> Option<Arc<HealthSource>> {
        self.file.as_ref()?;
        let condition = Arc::clone(&self.condition);
        Some(Arc::new(move || (**condition.load()).clone()))
    }

    /// Follows the file forever; without one, it only waits.
    pub(super) async fn follow(self, metrics: &Metrics) -> Infallible {
        let Some(file) = self.file else {
            return std::future::pending().await;
        };
        let mut was_good = self.condition.load().state == HealthState::Ready;
        let attempted = |is_valid| {
            metrics.policy_reloaded(is_valid);
            if is_valid {
                was_good = true;
                self.condition.store(Arc::new(good()));
            } else if was_good {
                self.condition.store(Arc::new(Readiness::degraded(
                    NAME,
                    "The policy file as it is now cannot be used; the log says why. The last good \
                     policy holds.",
                )));
            }
        };
        file.follow(INTERVAL, &self.effective, attempted).await
    }
}

fn good() -> Readiness {
    Readiness::ready(NAME, "The policy in use is the one in its file.")
}
