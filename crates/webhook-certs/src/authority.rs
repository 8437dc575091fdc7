//! A CA, and the certificates that it issues.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedKey, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::pem;

/// Certificates are valid from this long before they are issued, because clocks differ.
pub(super) const BACKDATED: SignedDuration = SignedDuration::from_hours(24);

/// A CA with its key.
pub(super) struct Authority {
    certificate: CertificateDer<'static>,
    pub(super) key: KeyPair,
    not_before: Timestamp,
    not_after: Timestamp,
}

impl Authority {
    /// Creates a CA that is valid from a day before `now` until `lifetime` after it.
    pub(super) fn make(now: Timestamp, lifetime: SignedDuration) -> Result<Self, rcgen::Error> {
        let (not_before, not_after) = (from(now), until(now, lifetime));
        // The name contains the time, so that no two trusted CAs have the same name.
        let name = format!("multi-attach-guard CA {now:.0}");
        let mut params = params(Vec::new(), &name, not_before, not_after)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.into();
        Ok(Self { certificate, key, not_before, not_after })
    }

    /// Reads a CA from its certificate and key in PEM.
    ///
    /// # Errors
    ///
    /// Fails with the fault in them, as a clause.
    pub(super) fn read(certificate: &[u8], key: &str) -> Result<Self, &'static str> {
        let certificate = CertificateDer::from_pem_slice(certificate)
            .map_err(|_| "the CA certificate is not PEM")?;
        let key = KeyPair::from_pem(key).map_err(|_| "the CA key is not a private key in PEM")?;
        let (_, parsed) = X509Certificate::from_der(&certificate)
            .map_err(|_| "the CA certificate is malformed")?;
        if !parsed.is_ca() {
            return Err("the CA certificate is not that of a CA");
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err("the CA key does not belong to the CA certificate");
        }
        let time = |seconds| {
            Timestamp::from_second(seconds)
                .map_err(|_| "the CA certificate has an invalid validity period")
        };
        let not_before = time(parsed.validity().not_before.timestamp())?;
        let not_after = time(parsed.validity().not_after.timestamp())?;
        Ok(Self { certificate, key, not_before, not_after })
    }

    /// Issues a certificate for `names`, each a DNS name or an IP address, that is valid from a
    /// day before `now` until `lifetime` after it, and no longer than the CA.
    pub(super) fn issue(
        &self,
        names: &[String],
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<CertifiedKey<KeyPair>, rcgen::Error> {
        let not_after = until(now, lifetime).min(self.not_after);
        let mut params = params(names.to_vec(), "multi-attach-guard", from(now), not_after)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let signing_key = KeyPair::generate()?;
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key)?;
        let cert = params.signed_by(&signing_key, &issuer)?;
        Ok(CertifiedKey { cert, signing_key })
    }

    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(super) fn certificate_pem(&self) -> String {
        pem::certificates([&self.certificate])
    }

    pub(super) fn not_before(&self) -> Timestamp {
        self.not_before
    }

    pub(super) fn not_after(&self) -> Timestamp {
        self.not_after
    }
}

fn from(now: Timestamp) -> Timestamp {
    now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN)
}

fn until(now: Timestamp, lifetime: SignedDuration) -> Timestamp {
    now.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}

fn params(
    names: Vec<String>,
    common_name: &str,
    not_before: Timestamp,
    not_after: Timestamp,
) -> Result<CertificateParams, rcgen::Error> {
    // A clock before 1970 is wrong anyway.
    let since_1970 =
        |time: Timestamp| Duration::from_secs(time.as_second().try_into().unwrap_or(0));
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(1970, 1, 1) + since_1970(not_before);
    params.not_after = date_time_ymd(1970, 1, 1) + since_1970(not_after);
    Ok(params)
}
