//! The policy in use: the built-in one, or that of a file that is followed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;

use super::options::ServeOptions;
use engine::verdict::EffectivePolicy;
use source::policy_file::{self, PolicyFile, PolicyFileError};
use webhook::server::{HealthSource, Metrics, Readiness};

/// How often the policy file is compared with what is in use. A kubelet needs
/// up to a minute to change a mounted ConfigMap, so this adds little.
const INTERVAL: Duration = Duration::from_secs(1);

/// The name of the condition on the policy.
const NAME: &str = "policy";

/// The policy in use, and the file it comes from.
pub(super) struct CurrentPolicy {
    effective: Arc<ArcSwap<EffectivePolicy>>,
    file: Option<PolicyFile>,
    health: Arc<Health>,
}

/// Whether the file as it is now cannot be used, and whether it never could.
#[derive(Default)]
struct Health {
    unusable: AtomicBool,
    never_good: AtomicBool,
}

impl CurrentPolicy {
    /// Opens the file that the options name. One that cannot be used must not keep the
    /// guard from starting: it was wrong for a while then, and a Pod that moves would be
    /// the moment at which nobody is guarded any more. Nor may it refuse what the file would
    /// have let pass: until the file is good there are warnings only, unless the options say
    /// otherwise.
    pub(super) fn open(options: &ServeOptions) -> Result<Self, PolicyFileError> {
        let health = Health::default();
        let (file, effective) = match &options.config {
            Some(path) => {
                let (file, effective) = PolicyFile::open_any(path.clone())?;
                let effective = match effective {
                    Err(error) if !options.policy_required => {
                        tracing::error!(%error, "The policy file cannot be used; until it can, nothing is refused.");
                        health.unusable.store(true, Ordering::Relaxed);
                        health.never_good.store(true, Ordering::Relaxed);
                        policy_file::warn_only()?
                    }
                    effective => effective?,
                };
                (Some(file), effective)
            }
            None => (None, policy_file::effective(None)?),
        };
        Ok(Self {
            effective: Arc::new(ArcSwap::from_pointee(effective)),
            file,
            health: Arc::new(health),
        })
    }

    pub(super) fn effective(&self) -> Arc<ArcSwap<EffectivePolicy>> {
        Arc::clone(&self.effective)
    }

    /// What readiness makes of the file; without one it has nothing to say.
    pub(super) fn health(&self) -> Option<Arc<dyn HealthSource>> {
        self.file.as_ref()?;
        Some(Arc::clone(&self.health) as _)
    }

    /// Follows the file forever; without one it only waits.
    pub(super) async fn follow(self, metrics: &Metrics) -> Infallible {
        let Some(file) = self.file else {
            return std::future::pending().await;
        };
        if self.health.never_good.load(Ordering::Relaxed) {
            metrics.policy.reloaded(false, Timestamp::now());
        } else {
            metrics.policy.set_read(Timestamp::now());
        }
        let attempted = |attempt: Result<&EffectivePolicy, &PolicyFileError>| {
            metrics.policy.reloaded(attempt.is_ok(), Timestamp::now());
            self.health
                .unusable
                .store(attempt.is_err(), Ordering::Relaxed);
            if attempt.is_ok() {
                self.health.never_good.store(false, Ordering::Relaxed);
            }
        };
        file.follow(INTERVAL, &self.effective, attempted).await
    }
}

impl HealthSource for Health {
    /// The fault itself goes to the log only: it may quote names from the file.
    fn report(&self) -> Vec<Readiness> {
        let [unusable, never_good] =
            [&self.unusable, &self.never_good].map(|flag| flag.load(Ordering::Relaxed));
        vec![match (unusable, never_good) {
            (true, true) => Readiness::degraded(
                NAME,
                "The policy file cannot be used; the log says why. Until it can, there are warnings only.",
            ),
            (true, false) => Readiness::degraded(
                NAME,
                "The policy file as it is now cannot be used; the log says why. The last good \
                 policy holds.",
            ),
            (false, _) => Readiness::ready(NAME, "The policy in use is the one in its file."),
        }]
    }
}
