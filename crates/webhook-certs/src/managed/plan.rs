//! Decides on the next step of the rotation from the state of the cluster.
//!
//! This order causes no failures: a new CA is in every caBundle, next to the old one, before a
//! certificate by it is served, and the old CA stays in the caBundles until long after the last
//! certificate by it was served.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;

use super::bundle::Bundle;
use super::stored::{Issued, IssuedSecret};
use crate::clock::Clocks;
use crate::pair::ServingPair;

/// The CA that is in every caBundle, and the uptime of this process when that was first seen.
#[derive(Default)]
pub(super) struct Trust(Option<(CertificateDer<'static>, Duration)>);

impl Trust {
    /// The time for which the stored CA has been in every caBundle, if it is. `running` is the time
    /// for which this process has been running.
    pub(super) fn lasts(&mut self, seen: &Seen<'_>, running: Duration) -> Option<Duration> {
        let authority = seen
            .stored
            .issued()
            .filter(|issued| seen.trust(&issued.pair))
            .map(|issued| issued.authority.certificate());
        if self.0.as_ref().map(|(trusted, _)| trusted) != authority {
            self.0 = authority.map(|authority| (authority.clone(), running));
        }
        let since = self.0.as_ref()?.1;
        Some(running.saturating_sub(since))
    }
}

/// The state of the cluster at one moment.
pub(super) struct Seen<'a> {
    pub(super) stored: &'a IssuedSecret,
    /// The existing webhook configurations; `None` if they could not be read.
    pub(super) configurations: Option<&'a [Configuration]>,
    /// The certificate that this process serves.
    pub(super) serving: Option<&'a ServingPair>,
    /// The time for which the stored CA has been in every caBundle.
    pub(super) trusted_for: Option<Duration>,
    /// The names that the certificate must have.
    pub(super) names: &'a [String],
    pub(super) clocks: Clocks,
}

/// One webhook configuration.
pub(super) struct Configuration {
    pub(super) kind: &'static str,
    pub(super) resource_version: String,
    /// The caBundle of each webhook, by the webhook's name.
    pub(super) bundles: Vec<(String, Bundle)>,
}

/// The times that changes take to spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// After this time, every API server uses a new caBundle.
    pub(super) settled: Duration,
    /// After this time, no replica serves a certificate by the previous CA.
    pub(super) forgotten: Duration,
}

/// The next steps.
#[derive(Default)]
pub(super) struct RotationPlan<'a> {
    /// The content to write to the Secret.
    pub(super) write: Option<Write<'a>>,
    /// The caBundles to change.
    pub(super) patches: Vec<Patch<'a>>,
    /// The time after which to serve the stored certificate, if it is not served yet.
    pub(super) serve_in: Option<Duration>,
}

/// The content to write to the Secret, and the reason.
pub(super) enum Write<'a> {
    /// A new CA and a certificate by it.
    Authority(Reason),
    /// A new certificate by this CA.
    Certificate(&'a Issued, Reason),
}

/// The reason why the Secret is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Absent,
    Unusable(String),
    /// The CA or the certificate is not valid before this time.
    Premature(&'static str, Timestamp),
    /// The CA or the certificate expires at this time.
    Due(&'static str, Timestamp),
    Names,
}

/// The new caBundles of a configuration.
pub(super) struct Patch<'a> {
    pub(super) configuration: &'a Configuration,
    pub(super) bundles: Vec<(&'a str, Bundle)>,
}

impl<'a> Seen<'a> {
    /// The next steps. If there is something to write, the others are for the case that the write
    /// fails. A replica whose clock disagrees with the API server's only serves the certificate of
    /// the others.
    pub(super) fn plan(&self, spread: Spread) -> RotationPlan<'a> {
        let plan = match self.stored {
            IssuedSecret::Absent => RotationPlan::writing(Write::Authority(Reason::Absent)),
            IssuedSecret::Unusable(why) => {
                RotationPlan::writing(Write::Authority(Reason::Unusable(why.clone())))
            }
            IssuedSecret::Usable(issued) => RotationPlan {
                write: self.write(issued),
                patches: self.patches(issued, spread),
                serve_in: self.serve_in(issued, spread),
            },
        };
        match self.clocks.disagreement() {
            None => plan,
            Some(_) => RotationPlan { serve_in: plan.serve_in, ..RotationPlan::default() },
        }
    }

    fn write(&self, issued: &'a Issued) -> Option<Write<'a>> {
        let Issued { authority, pair } = issued;
        let now = self.clocks.now();
        if let Some(reason) = fault("CA", authority.not_before(), authority.not_after(), now) {
            return Some(Write::Authority(reason));
        }
        let lacks_name = || self.names.iter().any(|name| !pair.is_for(name));
        fault("certificate", pair.not_before(), pair.not_after(), now)
            .or_else(|| lacks_name().then_some(Reason::Names))
            .map(|reason| Write::Certificate(issued, reason))
    }

    fn patches(&self, issued: &Issued, spread: Spread) -> Vec<Patch<'a>> {
        let now = self.clocks.now();
        // Before the stored certificate is valid, the replicas serve one by another CA.
        let others = !issued.pair.is_current(now)
            || self.trusted_for.is_none_or(|time| time < spread.forgotten);
        let authority = issued.authority.certificate();
        let patch = |configuration: &'a Configuration| {
            let changed = configuration.bundles.iter().filter_map(|(name, bundle)| {
                let wanted = bundle.led_by(authority, others, now);
                (!bundle.is(&wanted)).then_some((name.as_str(), wanted))
            });
            Patch { configuration, bundles: changed.collect() }
        };
        let configurations = self.configurations.unwrap_or_default().iter();
        configurations.map(patch).filter(|patch| !patch.bundles.is_empty()).collect()
    }

    fn serve_in(&self, issued: &Issued, spread: Spread) -> Option<Duration> {
        let trusted_for = self.trusted_for?;
        let Some(serving) = self.serving else {
            return Some(Duration::ZERO);
        };
        let now = self.clocks.now();
        if serving.is(&issued.pair) || !issued.pair.is_current(now) {
            return None;
        }
        let is_accepted = serving.is_current(now) && self.trust(serving);
        Some(if is_accepted { spread.settled.saturating_sub(trusted_for) } else { Duration::ZERO })
    }

    /// Whether every caBundle is known to accept `pair`.
    fn trust(&self, pair: &ServingPair) -> bool {
        self.configurations.is_some_and(|configurations| {
            configurations
                .iter()
                .flat_map(|configuration| &configuration.bundles)
                .all(|(_, bundle)| bundle.accepts(pair))
        })
    }
}

impl<'a> RotationPlan<'a> {
    fn writing(write: Write<'a>) -> Self {
        Self { write: Some(write), ..Self::default() }
    }
}

/// The reason to replace the CA or certificate, if its validity period has not begun, or two thirds
/// of it are over, as for the certificates of kubelets.
fn fault(what: &'static str, from: Timestamp, until: Timestamp, now: Timestamp) -> Option<Reason> {
    let (age, lifetime) = (now.duration_since(from), until.duration_since(from));
    if age.is_negative() {
        return Some(Reason::Premature(what, from));
    }
    (age >= lifetime * 2 / 3).then_some(Reason::Due(what, until))
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "it did not exist"),
            Self::Unusable(why) => write!(f, "its content was not usable: {why}"),
            Self::Premature(what, from) => write!(f, "the {what} is not valid before {from}"),
            Self::Due(what, until) => write!(f, "the {what} expires at {until}"),
            Self::Names => write!(f, "the certificate lacked a requested name"),
        }
    }
}
