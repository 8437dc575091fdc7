//! A certificate made on the spot, for trying things out.

use std::path::Path;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls_pki_types::{CertificateDer, DnsName, PrivatePkcs8KeyDer};

use super::pair::{CertError, ServingPair};

/// How long the certificate is good for, in days. It is made anew at each
/// start.
const VALID_DAYS: i32 = 365;

/// A certificate authority made for this process, and the pair it signed. The
/// authority's key is forgotten as soon as it has signed.
#[derive(Debug)]
pub struct SelfSigned {
    /// What to serve.
    pub pair: ServingPair,
    /// The authority's certificate, in PEM: what a client must trust.
    pub ca_pem: String,
}

impl SelfSigned {
    /// Makes a pair for `localhost`, `127.0.0.1`, `::1`, this machine's name
    /// and `names`, each a DNS name or an IP address, good from the day before
    /// `now`, because clocks differ.
    pub fn generate(names: &[String], now: Timestamp) -> Result<Self, CertError> {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
        if let Ok(host) = hostname::get()
            && let Some(host) = host.to_str()
            && DnsName::try_from(host).is_ok()
        {
            all.push(host.to_owned());
        }
        all.extend_from_slice(names);
        all.sort();
        all.dedup();
        let failed = |reason: String| CertError::Generate {
            names: all.join(", "),
            reason,
        };
        let (chain, key, ca_pem) =
            generate(&all, now).map_err(|error| failed(error.to_string()))?;
        // There are no files to name; the message can only be about the names.
        let pair = ServingPair::new(vec![chain], Path::new(""), key.into(), Path::new(""))
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { pair, ca_pem })
    }
}

type Generated = (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>, String);

fn generate(names: &[String], now: Timestamp) -> Result<Generated, rcgen::Error> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let mut ca = params(Vec::new(), "multi-attach-guard self-signed CA", today)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut leaf = params(names.to_vec(), "multi-attach-guard", today)?;
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &ca)?;
    Ok((certificate.into(), key.serialize_der().into(), ca.pem()))
}

fn params(
    names: Vec<String>,
    common_name: &str,
    today: Date,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    let midnight = |day: Date| {
        let (month, of_month) = (day.month().unsigned_abs(), day.day().unsigned_abs());
        date_time_ymd(day.year().into(), month, of_month)
    };
    params.not_before = midnight(today.saturating_sub(1.day()));
    params.not_after = midnight(today.saturating_add(VALID_DAYS.days()));
    Ok(params)
}
