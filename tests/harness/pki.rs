//! The certificates of one control plane, made anew for each control plane.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// A certificate authority and the folder of its certificates.
pub(crate) struct Pki {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, both PEM files.
pub(crate) struct Pair {
    /// The certificate.
    pub(crate) certificate: PathBuf,
    /// Its key, PKCS #8.
    pub(crate) key: PathBuf,
}

impl Pki {
    /// Makes a CA and writes its certificate to `folder/ca.crt`.
    pub(crate) fn create(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.crt"), authority.pem()).unwrap();
        Self { folder: folder.to_owned(), authority }
    }

    /// The CA's certificate, PEM.
    pub(crate) fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// The file that holds [`Self::authority_pem`].
    pub(crate) fn authority_file(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// A builder for an HTTP client that trusts this authority and no other.
    pub(crate) fn http_client_builder(&self) -> reqwest::ClientBuilder {
        let authority = reqwest::Certificate::from_pem(self.authority.pem().as_bytes()).unwrap();
        reqwest::Client::builder().tls_certs_only([authority])
    }

    /// A serving certificate for the loopback address, in files called `name`.
    pub(crate) fn serving(&self, name: &str) -> Pair {
        self.issue(name, loopback(), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate; Kubernetes reads the common name as the user and the organisation as a
    /// group.
    pub(crate) fn client(&self, user: &str, group: &str) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.issue(user, params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A key pair without a certificate, for service account tokens: the files of the private and
    /// the public key. The API server cannot read the public key from a private key in this format,
    /// so it needs both.
    pub(crate) fn token_keys(&self) -> (PathBuf, PathBuf) {
        let private = self.folder.join("service-account.key");
        let public = self.folder.join("service-account.pub");
        let key = KeyPair::generate().unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        std::fs::write(&public, key.public_key_pem()).unwrap();
        (private, public)
    }

    fn issue(
        &self,
        name: &str,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Pair {
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let pair = Pair {
            certificate: self.folder.join(format!("{name}.crt")),
            key: self.folder.join(format!("{name}.key")),
        };
        std::fs::write(&pair.certificate, certificate.pem()).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }
}

fn loopback() -> CertificateParams {
    CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap()
}
