//! The content of the Secret: a CA, and a certificate that it issued.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::Lifetimes;
use crate::authority::Authority;
use crate::pair::ServingPair;

/// The key of the certificate, as in every Secret of type kubernetes.io/tls.
const CERTIFICATE: &str = "tls.crt";
/// The key of the certificate's private key, as in those Secrets.
const KEY: &str = "tls.key";
/// The key of the CA's certificate.
const AUTHORITY: &str = "ca.crt";
/// The key of the CA's private key.
const AUTHORITY_KEY: &str = "ca.key";

/// The `data` of the Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// The Secret as it was read.
pub(super) enum IssuedSecret {
    Absent,
    /// It exists, but is not usable; the clause says why.
    Unusable(String),
    Usable(Box<Issued>),
}

/// A CA and the certificate that it issued.
pub(super) struct Issued {
    pub(super) authority: Authority,
    pub(super) pair: Arc<ServingPair>,
}

impl IssuedSecret {
    pub(super) fn read(data: Option<&Data>) -> Self {
        match data.map(Issued::read) {
            None => Self::Absent,
            Some(Err(reason)) => Self::Unusable(reason),
            Some(Ok(issued)) => Self::Usable(Box::new(issued)),
        }
    }

    /// Its content, if it is usable.
    pub(super) fn issued(&self) -> Option<&Issued> {
        match self {
            Self::Usable(issued) => Some(issued),
            Self::Absent | Self::Unusable(_) => None,
        }
    }
}

impl Issued {
    fn read(data: &Data) -> Result<Self, String> {
        let value = |key: &str| {
            data.get(key).map(|value| value.0.as_slice()).ok_or_else(|| format!("it has no {key}"))
        };
        let authority_key = std::str::from_utf8(value(AUTHORITY_KEY)?)
            .map_err(|_| format!("{AUTHORITY_KEY} is not text"))?;
        let authority = Authority::read(value(AUTHORITY)?, authority_key)?;
        let mut pair = ServingPair::from_pem(
            value(CERTIFICATE)?,
            Path::new(CERTIFICATE),
            value(KEY)?,
            Path::new(KEY),
        )
        .map_err(|_| format!("{CERTIFICATE} and {KEY} are not a certificate and its key"))?;
        if !pair.is_accepted(from_ref(authority.certificate())) {
            return Err(format!("{CERTIFICATE} was not issued by {AUTHORITY}"));
        }
        pair.authority_not_after = Some(authority.not_after());
        Ok(Self { authority, pair: Arc::new(pair) })
    }
}

/// The data of a new CA and a certificate by it.
pub(super) fn with_new_authority(
    names: &[String],
    now: Timestamp,
    lifetimes: Lifetimes,
) -> Result<Data, rcgen::Error> {
    let authority = Authority::make(now, lifetimes.authority)?;
    with_new_certificate(&authority, names, now, lifetimes)
}

/// The data of the same CA and a new certificate by it.
pub(super) fn with_new_certificate(
    authority: &Authority,
    names: &[String],
    now: Timestamp,
    lifetimes: Lifetimes,
) -> Result<Data, rcgen::Error> {
    let issued = authority.issue(names, now, lifetimes.certificate)?;
    let data = [
        (CERTIFICATE, issued.cert.pem()),
        (KEY, issued.signing_key.serialize_pem()),
        (AUTHORITY, authority.certificate_pem()),
        (AUTHORITY_KEY, authority.key.serialize_pem()),
    ];
    let bytes = |text: String| ByteString(text.into_bytes());
    Ok(data.map(|(key, text)| (key.to_owned(), bytes(text))).into())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const LIFETIMES: Lifetimes = Lifetimes {
        authority: SignedDuration::from_hours(48),
        certificate: SignedDuration::from_hours(24),
    };

    fn data() -> Data {
        with_new_authority(&["guard.shop.svc".to_owned()], Timestamp::now(), LIFETIMES).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let now = Timestamp::now();
        let IssuedSecret::Usable(issued) = IssuedSecret::read(Some(&data())) else {
            panic!("it is usable");
        };
        assert!(issued.pair.is_for("guard.shop.svc"));
        assert!(!issued.pair.is_for("elsewhere"));
        assert!(issued.pair.is_current(now));
        assert!(issued.pair.not_before() < now - SignedDuration::from_hours(23));
        assert!(issued.pair.not_after() < issued.authority.not_after());

        let later = now + SignedDuration::from_hours(40);
        let renewed = with_new_certificate(&issued.authority, &[], later, LIFETIMES).unwrap();
        let IssuedSecret::Usable(renewed) = IssuedSecret::read(Some(&renewed)) else {
            panic!("it is usable");
        };
        let end = issued.authority.not_after();
        assert_eq!(renewed.pair.not_after(), end, "no longer than the CA");
    }

    #[test]
    fn invalid_content_is_reported() {
        let (good, other) = (data(), data());
        let with = |key: &str, value: &[u8]| {
            let mut data = good.clone();
            data.insert(key.to_owned(), ByteString(value.to_vec()));
            data
        };
        let mut without = good.clone();
        without.remove("ca.key");
        let mut swapped = good.clone();
        for key in ["tls.crt", "tls.key"] {
            swapped.insert(key.to_owned(), other[key].clone());
        }
        let cases = [
            (Data::new(), "it has no ca.key"),
            (without, "it has no ca.key"),
            (with("ca.key", b"\xff"), "ca.key is not text"),
            (with("ca.key", b"?"), "not a private key in PEM"),
            (with("ca.key", &other["ca.key"].0), "does not belong"),
            (with("ca.crt", b"?"), "certificate is not PEM"),
            (with("ca.crt", &good["tls.crt"].0), "not that of a CA"),
            (with("tls.crt", b""), "not a certificate and its key"),
            (with("tls.key", &other["tls.key"].0), "are not a"),
            (swapped, "tls.crt was not issued by ca.crt"),
        ];
        for (data, expected) in cases {
            match IssuedSecret::read(Some(&data)) {
                IssuedSecret::Unusable(reason) => assert!(reason.contains(expected), "{reason}"),
                _ => panic!("taken: {expected}"),
            }
        }
        assert!(matches!(IssuedSecret::read(None), IssuedSecret::Absent));
    }
}
