//! A certificate that needs nobody: the replicas make an authority and a
//! certificate by it, keep both in a Secret that they share, write the authority
//! into the webhook configurations, and renew everything in time.
//!
//! Every replica does the same, and no one leads: each looks at the Secret and the
//! configurations, asks [`plan`] what is to be done next, and does it. Writes name
//! the version that was seen, so that of two at the same time one fails, looks
//! again and finds the work done.

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
use std::time::Duration;

use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::time::{Instant, sleep, timeout};

use super::Certificates;
use super::pair::ServingPair;
use objects::{Objects, Written};
use plan::{Seen, Spread, Trust, Write};
use stored::{Data, IssuedSecret};

pub use objects::ManagedError;

/// The name of the webhook configurations and of the Service.
const NAME: &str = "multi-attach-guard";

/// The name of the Secret. It is not that of the Secret in which the guard is given
/// a certificate by others, who would be fought.
const SECRET: &str = "multi-attach-guard-managed-tls";

/// In one go at most so much is done one after the other; a go begins anew a moment
/// later. More happens only when others change the objects at the same time.
const STEPS: usize = 8;

/// How long what is made is good for. It is renewed after two thirds of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of the authority.
    pub authority: SignedDuration,
    /// Of the certificate; one by an authority that ends earlier ends with it.
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

/// When things are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How often to look though nothing is said to have changed. The time is read
    /// anew each time, as machines sleep and clocks are set.
    pub look: Duration,
    /// How long after a failure to try again.
    pub retry: Duration,
    /// The least time between two goes, so that nobody who undoes what is done here
    /// makes it spin.
    pub pause: Duration,
    /// How long an API server may take to go by a new caBundle. Its watch brings it
    /// at once unless it has to begin anew.
    pub settled: Duration,
    /// How long a replica may take to show a new certificate. The authority before
    /// is trusted for as long.
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

/// What is shown from now on.
#[derive(Debug)]
pub struct Served {
    /// The certificate.
    pub pair: Arc<ServingPair>,
    /// Until when the authority that issued it is good.
    pub authority_not_after: Timestamp,
}

/// The certificate of the Service `multi-attach-guard` in one namespace.
#[derive(Clone, Debug)]
pub struct ManagedCertificate {
    /// The namespace of the Service and of the Secret.
    pub namespace: String,
    /// What the certificate is for beside the Service: DNS names and IP addresses.
    pub further_names: Vec<String>,
    /// How long what is made is good for.
    pub lifetimes: Lifetimes,
    /// When things are done.
    pub pace: Pace,
}

impl ManagedCertificate {
    /// Manages the certificate for ever, and puts it into `certificates`. `now` tells
    /// the time. `attempted` hears of each certificate that is shown, and of what is
    /// wrong whenever that is something new.
    pub async fn follow(
        &self,
        client: Client,
        certificates: &Certificates,
        now: impl Fn() -> Timestamp,
        attempted: impl Fn(Result<&Served, &ManagedError>),
    ) -> Infallible {
        let objects = Objects::new(client, &self.namespace);
        let mut changes = objects.changes();
        let mut manager = Manager {
            certificate: self,
            names: self.names(),
            objects,
            certificates,
            trust: Trust::default(),
            began: Instant::now(),
        };
        loop {
            let wait = match manager.go(&now, &attempted).await {
                Ok(wait) => {
                    certificates.is_well();
                    wait
                }
                Err(error) => {
                    let sentence = error.to_string();
                    if certificates.failure().is_none_or(|it| *it != sentence) {
                        tracing::error!(%error, "The certificate cannot be managed as it should be.");
                        attempted(Err(&error));
                    }
                    certificates.fails(&error);
                    self.pace.retry
                }
            };
            sleep(self.pace.pause).await;
            // Without an answer it is time to look in any case.
            let _ = timeout(wait, changes.next()).await;
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names = vec![format!("{NAME}.{}.svc", self.namespace)];
        names.extend_from_slice(&self.further_names);
        names
    }
}

struct Manager<'a> {
    certificate: &'a ManagedCertificate,
    names: Vec<String>,
    objects: Objects,
    certificates: &'a Certificates,
    trust: Trust,
    began: Instant,
}

impl Manager<'_> {
    /// Does what is to be done now. Says after how long there is more to do.
    async fn go(
        &mut self,
        now: &impl Fn() -> Timestamp,
        attempted: &impl Fn(Result<&Served, &ManagedError>),
    ) -> Result<Duration, ManagedError> {
        let pace = self.certificate.pace;
        let spread = Spread {
            settled: pace.settled,
            forgotten: pace.forgotten,
        };
        for _ in 0..STEPS {
            let secret = self.objects.secret().await?;
            let stored = IssuedSecret::read(secret.as_ref().map(data_of).as_ref());
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
                now: now(),
            };
            seen.trusted_for = self.trust.lasts(&seen, self.began.elapsed());
            let plan = seen.plan(spread);

            if let Some(write) = &plan.write {
                match self.write(secret, write, seen.now).await {
                    Ok(()) => continue,
                    Err(error) => failure = Some(error),
                }
            }
            let mut patched = false;
            for patch in &plan.patches {
                let kind = patch.configuration.kind;
                match self.objects.patch(patch).await {
                    Ok(Written::Yes) => {
                        tracing::info!(kind, "The authorities in the caBundles were put in order.");
                        patched = true;
                    }
                    Ok(Written::Conflict) => patched = true,
                    Err(error) => failure = Some(error),
                }
            }
            if patched {
                continue;
            }
            let mut wait = pace.look;
            match (plan.serve_in, stored) {
                (Some(Duration::ZERO), IssuedSecret::Usable(issued)) => {
                    let served = Served {
                        pair: issued.pair,
                        authority_not_after: issued.authority.not_after(),
                    };
                    tracing::info!(
                        expires = %served.pair.not_after(),
                        authority_expires = %served.authority_not_after,
                        "New connections get the certificate in the Secret.",
                    );
                    self.certificates.replace(Arc::clone(&served.pair));
                    attempted(Ok(&served));
                }
                (Some(after), _) => wait = wait.min(after),
                (None, _) => {}
            }
            return failure.map_or(Ok(wait), Err);
        }
        Ok(Duration::ZERO)
    }

    async fn write(
        &self,
        seen: Option<Secret>,
        write: &Write<'_>,
        now: Timestamp,
    ) -> Result<(), ManagedError> {
        let lifetimes = self.certificate.lifetimes;
        let (made, what, reason) = match write {
            Write::Authority(reason) => (
                stored::with_new_authority(&self.names, now, lifetimes),
                "authority",
                reason,
            ),
            Write::Certificate(issued, reason) => (
                stored::with_new_certificate(&issued.authority, &self.names, now, lifetimes),
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
            tracing::info!(%reason, "A new {what} was put into the Secret {SECRET}.");
        } else {
            tracing::info!("Another replica wrote the Secret {SECRET} first.");
        }
        Ok(())
    }
}

fn data_of(secret: &Secret) -> Data {
    secret.data.clone().unwrap_or_default()
}
