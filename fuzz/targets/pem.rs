//! Certificates, keys and bundles of authorities in PEM.

use std::path::Path;
use std::sync::LazyLock;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use webhook_certs::{ClientAuthorities, ServingPair};

/// A valid certificate and its key in PEM, generated for each run, so that no key is stored.
static PAIR: LazyLock<[String; 2]> = LazyLock::new(|| {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate can be made");
    [cert.pem(), signing_key.serialize_pem()]
});

/// A file without a certificate or without a key is refused with a sentence that names it. In the
/// bytes, `%CERTIFICATE%` and `%KEY%` stand for a valid pair.
pub fn run(bytes: &[u8]) {
    let [good_certificate, good_key] = &*PAIR;
    let filled = match str::from_utf8(bytes) {
        Ok(text) => text
            .replacen("%CERTIFICATE%", good_certificate, 8)
            .replacen("%KEY%", good_key, 8)
            .into_bytes(),
        Err(_) => bytes.to_owned(),
    };
    let pem = filled.as_slice();
    let [certificate, key] = ["tls.crt", "tls.key"].map(Path::new);
    for (chain, secret) in
        [(pem, good_key.as_bytes()), (good_certificate.as_bytes(), pem), (pem, pem)]
    {
        match ServingPair::from_pem(chain, certificate, secret, key) {
            Ok(pair) => assert!(!pair.is_expired(pair.not_after())),
            Err(error) => {
                let sentence = error.to_string();
                assert!(sentence.contains("tls."), "{sentence}");
                assert!(sentence.ends_with('.'), "{sentence}");
            }
        }
    }
    if let Err(error) = ClientAuthorities::from_pem(pem, Path::new("ca.crt")) {
        let sentence = error.to_string();
        assert!(sentence.contains("ca.crt"), "{sentence}");
        assert!(sentence.ends_with('.'), "{sentence}");
    }
}
