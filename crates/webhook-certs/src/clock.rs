//! The clock of this machine beside that of the API server.
//!
//! The API server verifies the certificate, so its clock decides whether the certificate is valid,
//! and every answer has its time in the `Date` header. Other times in a cluster are worse: the
//! timestamps of an object say only when it was written, and Leases have the times of kubelets.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::authority::BACKDATED;

/// The times of both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// The time of this machine.
    pub(crate) own: Timestamp,
    /// The time of the API server; `None` if a proxy has removed it from the answer.
    pub(crate) api_server: Option<Timestamp>,
}

impl Clocks {
    /// The time by which certificates are judged and issued.
    pub(crate) fn now(self) -> Timestamp {
        self.api_server.unwrap_or(self.own)
    }

    /// The difference, if it is too large for certificates.
    pub(crate) fn disagreement(self) -> Option<Disagreement> {
        let ahead = self.own.duration_since(self.api_server?);
        (ahead.abs() > BACKDATED).then_some(Disagreement(ahead))
    }
}

/// The time by which the clock of this machine is ahead of the API server's; negative if it is
/// behind. A certificate that this clock dates may be invalid by the other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disagreement(SignedDuration);

impl fmt::Display for Disagreement {
    /// A sentence without its full stop. It stays the same while both clocks advance.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = (self.0.abs() + SignedDuration::from_mins(30)).as_hours();
        let direction = if self.0.is_positive() { "ahead of" } else { "behind" };
        write!(f, "This machine's clock is ")?;
        match hours {
            ..48 => write!(f, "{hours} hours")?,
            _ => write!(f, "{} days", (hours + 12) / 24)?,
        }
        write!(
            f,
            " {direction} the API server's. Set this machine's clock: until it agrees, this \
             replica writes no certificate and is not ready"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_by_more_than_a_day_is_named() {
        let api_server: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let cases = [
            ("0s", None),
            ("24h", None),
            ("24h 1s ago", Some("24 hours behind")),
            ("47h 29m", Some("47 hours ahead of")),
            ("47h 30m ago", Some("2 days behind")),
            ("2399h 59m 59s ago", Some("100 days behind")),
        ];
        for (ahead, expected) in cases {
            let own = api_server + ahead.parse::<SignedDuration>().unwrap();
            let found = Clocks { own, api_server: Some(api_server) }.disagreement();
            let sentence = found.as_ref().map(ToString::to_string);
            let said =
                expected.map(|by| format!("This machine's clock is {by} the API server's. "));
            assert_eq!(sentence.is_some(), said.is_some(), "{ahead}");
            assert!(sentence.unwrap_or_default().starts_with(&said.unwrap_or_default()), "{ahead}");
            assert!(Clocks { own, api_server: None }.disagreement().is_none());
        }
    }
}
