//! The settings in use: the built-in ones, or those of a file that is followed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use super::options::ServeOptions;
use crate::cli::policy_file::{self, PolicyFile, PolicyFileError};
use crate::server::{Condition, HealthSource, Metrics};
use crate::verdict::Settings;

/// How often the policy file is compared with what is in use. A kubelet needs
/// up to a minute to change a mounted ConfigMap, so this adds little.
const INTERVAL: Duration = Duration::from_secs(1);

/// The name of the condition on the policy.
const NAME: &str = "policy";

/// The settings, and the file they come from.
pub(super) struct CurrentPolicy {
    settings: Arc<ArcSwap<Settings>>,
    file: Option<PolicyFile>,
    health: Arc<Health>,
}

/// Whether the file as it is now cannot be used.
#[derive(Default)]
struct Health(AtomicBool);

impl CurrentPolicy {
    pub(super) fn open(options: &ServeOptions) -> Result<Self, PolicyFileError> {
        let (file, settings) = match &options.config {
            Some(path) => {
                let (file, settings) = PolicyFile::open(path.clone())?;
                (Some(file), settings)
            }
            None => (None, policy_file::settings(None)?),
        };
        Ok(Self {
            settings: Arc::new(ArcSwap::from_pointee(settings)),
            file,
            health: Arc::default(),
        })
    }

    pub(super) fn settings(&self) -> Arc<ArcSwap<Settings>> {
        Arc::clone(&self.settings)
    }

    /// What readiness makes of the file; without one it has nothing to say.
    pub(super) fn health(&self) -> Option<Arc<dyn HealthSource>> {
        self.file.as_ref()?;
        Some(Arc::clone(&self.health) as _)
    }

    /// Follows the file for ever; without one there is nothing to follow.
    pub(super) async fn follow(self, metrics: &Metrics) -> Infallible {
        let Some(file) = self.file else {
            return std::future::pending().await;
        };
        metrics.set_policy_read(Timestamp::now());
        let attempted = |attempt: Result<&Settings, &PolicyFileError>| {
            metrics.policy_reloaded(attempt.is_ok(), Timestamp::now());
            self.health.0.store(attempt.is_err(), Ordering::Relaxed);
        };
        file.follow(INTERVAL, &self.settings, attempted).await
    }
}

impl HealthSource for Health {
    /// The fault itself stands in the log: it may quote names from the file.
    fn report(&self) -> Vec<Condition> {
        vec![match self.0.load(Ordering::Relaxed) {
            true => Condition::degraded(
                NAME,
                "The policy file as it is now cannot be used; the log says why. The last good \
                 policy holds.",
            ),
            false => Condition::ready(NAME, "The policy in use is the one in its file."),
        }]
    }
}
