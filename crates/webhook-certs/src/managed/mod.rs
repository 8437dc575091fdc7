//! A certificate that the replicas manage themselves: they create a CA and a certificate, store
//! both in a Secret that they share, write the CA into the webhook configurations, and rotate
//! everything in time.
//!
//! There is no leader: each replica reads the Secret and the configurations, lets [`plan`]
//! decide on the next step, and takes it. Writes name the version that was read, so that one
//! of two concurrent writes fails, and that replica reads again and finds the work done.

mod bundle;
#[cfg(test)]
mod interleavings;
mod objects;
mod plan;
mod stored;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::time::{sleep, timeout};

use super::Certificates;
use super::clock::Clocks;
use objects::{ManagedError, Objects, Written};
use plan::{Patch, Seen, Spread, Trust, Write};
use stored::{Issued, IssuedSecret};

/// The name of the webhook configurations and of the Service.
const NAME: &str = "multi-attach-guard";

/// The name of the Secret. It differs from that of the Secret that other tools write, so that
/// they do not overwrite each other.
const SECRET: &str = "multi-attach-guard-managed-tls";

/// The largest number of steps in one pass. More are needed only if others change the objects at
/// the same time; then the next pass takes them.
const STEPS: usize = 8;

/// The validity periods of certificates, which are renewed after two thirds of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The validity of the CA.
    pub authority: SignedDuration,
    /// The validity of the certificate, which never outlives the CA.
    pub certificate: SignedDuration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: i64 = 24;
        Self {
            authority: SignedDuration::from_hours(365 * DAY),
            certificate: SignedDuration::from_hours(90 * DAY),
        }
    }
}

/// The timing of the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time between two checks without a reported change. Each check reads the clock, because
    /// machines sleep and clocks are set.
    pub look: Duration,
    /// The time to wait after a failure.
    pub retry: Duration,
    /// The minimum time between two passes, in case another program reverts every change.
    pub pause: Duration,
    /// The time that an API server may take to use a new caBundle: its watch has to start again in
    /// the worst case.
    pub settled: Duration,
    /// The time that a replica may take to serve a new certificate. The previous CA stays trusted
    /// for that time.
    pub forgotten: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look: Duration::from_secs(60),
            retry: Duration::from_secs(5),
            pause: Duration::from_secs(1),
            settled: Duration::from_secs(10),
            forgotten: Duration::from_secs(60 * 60),
        }
    }
}

/// The certificate of the Service `multi-attach-guard` in one namespace.
#[derive(Clone, Debug)]
pub struct ManagedCertificate {
    /// The namespace of the Service and of the Secret.
    pub namespace: String,
    /// Further DNS names and IP addresses, in addition to that of the Service.
    pub further_names: Vec<String>,
    /// The validity periods of certificates.
    pub lifetimes: Lifetimes,
    /// The timing of the rotation.
    pub pace: Pace,
}

impl ManagedCertificate {
    /// Manages the certificate in `certificates`, forever. `now` is the clock of this machine, which
    /// is compared with the API server's. `attempted` is called with `true` after a new certificate
    /// is served, and with `false` for each new error.
    pub async fn follow(
        self,
        client: Client,
        certificates: Arc<Certificates>,
        now: impl Fn() -> Timestamp,
        attempted: impl Fn(bool),
    ) -> Infallible {
        let objects = Objects::new(client, &self.namespace);
        let mut changes = objects.changes();
        let mut names = vec![format!("{NAME}.{}.svc", self.namespace)];
        names.extend_from_slice(&self.further_names);
        let mut manager = Manager {
            certificate: &self,
            names,
            objects,
            certificates: &certificates,
            trust: Trust::default(),
            began: Instant::now(),
            replaced: false,
        };
        loop {
            let wait = match manager.pass(&now, &attempted).await {
                Ok(wait) => {
                    certificates.failure.store(None);
                    wait
                }
                Err(error) => {
                    let sentence = error.to_string();
                    if certificates.failure().is_none_or(|previous| *previous != sentence) {
                        tracing::error!(%error, "The certificate cannot be managed.");
                        attempted(false);
                    }
                    certificates.failure.store(Some(Arc::new(sentence)));
                    self.pace.retry
                }
            };
            sleep(self.pace.pause).await;
            if manager.replaced {
                // A replica of another version may replace the Secret again and again.
                sleep(wait).await;
            } else {
                // After a timeout, it is time to check anyway.
                let _ = timeout(wait, changes.next()).await;
            }
        }
    }
}

struct Manager<'a> {
    certificate: &'a ManagedCertificate,
    names: Vec<String>,
    objects: Objects,
    certificates: &'a Certificates,
    trust: Trust,
    began: Instant,
    /// Whether the last pass wrote a Secret in place of another one.
    replaced: bool,
}

impl Manager<'_> {
    /// Takes the steps that are due now, and returns the time to wait for the next ones.
    async fn pass(
        &mut self,
        now: &impl Fn() -> Timestamp,
        attempted: &impl Fn(bool),
    ) -> Result<Duration, ManagedError> {
        let pace = self.certificate.pace;
        let spread = Spread { settled: pace.settled, forgotten: pace.forgotten };
        self.replaced = false;
        for _ in 0..STEPS {
            let clocks = Clocks { api_server: self.objects.time().await?, own: now() };
            self.certificates.clocks.store(Some(Arc::new((clocks, Instant::now()))));
            let secret = self.objects.secret().await?;
            let data = secret.as_ref().map(|secret| secret.data.clone().unwrap_or_default());
            let stored = IssuedSecret::read(data.as_ref());
            let (configurations, mut failure) = match self.objects.configurations().await {
                Ok((found, absent)) => (Some(found), absent),
                Err(error) => (None, Some(error)),
            };
            let serving = self.certificates.current();
            let mut seen = Seen {
                stored: &stored,
                configurations: configurations.as_deref(),
                serving: serving.as_deref(),
                trusted_for: None,
                names: &self.names,
                clocks,
            };
            seen.trusted_for = self.trust.lasts(&seen, self.began.elapsed());
            let plan = seen.plan(spread);

            if let Some(disagreement) = clocks.disagreement() {
                failure = Some(ManagedError::Clock(disagreement));
            }
            if let Some(write) = &plan.write {
                self.replaced = secret.is_some();
                match self.write(secret, write, clocks.now()).await {
                    Ok(()) => continue,
                    Err(error) => failure = Some(error),
                }
            }
            if self.patch(&plan.patches, &mut failure).await {
                continue;
            }
            let wait = match (plan.serve_in, stored) {
                (Some(Duration::ZERO), IssuedSecret::Usable(issued)) => {
                    self.serve(&issued);
                    attempted(true);
                    pace.look
                }
                (Some(after), _) => pace.look.min(after),
                (None, _) => pace.look,
            };
            return failure.map_or(Ok(wait), Err);
        }
        Ok(Duration::ZERO)
    }

    /// Writes the caBundles, and returns whether one may have changed.
    async fn patch(&self, patches: &[Patch<'_>], failure: &mut Option<ManagedError>) -> bool {
        let mut patched = false;
        for patch in patches {
            match self.objects.patch(patch).await {
                Ok(Written::Yes) => {
                    let kind = patch.configuration.kind;
                    tracing::info!(kind, "The caBundles were updated.");
                    patched = true;
                }
                Ok(Written::Conflict) => patched = true,
                Err(error) => *failure = Some(error),
            }
        }
        patched
    }

    fn serve(&self, issued: &Issued) {
        tracing::info!(
            expires = %issued.pair.not_after(),
            authority_expires = %issued.authority.not_after(),
            "New connections use the certificate in the Secret.",
        );
        self.certificates.current.store(Some(Arc::clone(&issued.pair)));
    }

    async fn write(
        &self,
        seen: Option<Secret>,
        write: &Write<'_>,
        now: Timestamp,
    ) -> Result<(), ManagedError> {
        let lifetimes = self.certificate.lifetimes;
        let (made, what, reason) = match write {
            Write::Authority(reason) => {
                (stored::with_new_authority(&self.names, now, lifetimes), "CA", reason)
            }
            Write::Certificate(issued, reason) => (
                stored::with_new_certificate(&issued.authority, &self.names, now, lifetimes)
                    // A CA from elsewhere may be one that cannot be used here.
                    .or_else(|_| stored::with_new_authority(&self.names, now, lifetimes)),
                "certificate",
                reason,
            ),
        };
        let data = made.map_err(|error| ManagedError::Generate {
            names: self.names.join(", "),
            reason: error.to_string(),
        })?;
        let written = self.objects.write(seen, data).await?;
        if written == Written::Yes {
            tracing::info!(%reason, "A new {what} was written to the Secret {SECRET}.");
        } else {
            tracing::info!("Another replica wrote the Secret {SECRET} first.");
        }
        Ok(())
    }
}
