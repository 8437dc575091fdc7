//! A kubeconfig, from its text to a client.

use std::sync::LazyLock;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use source::connect::client;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    // The first call in a process decides; `main` makes the same call.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
});

/// A kubeconfig results in a client or in an error with a message. Nothing in it is executed, and
/// no file that it names is read, because their contents are not the reader's concern.
pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let mut kubeconfig = match Kubeconfig::from_yaml(text) {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for named in &mut kubeconfig.auth_infos {
        let Some(user) = &mut named.auth_info else {
            continue;
        };
        user.exec = None;
        user.auth_provider = None;
        user.token_file = None;
        user.client_certificate = None;
        user.client_key = None;
    }
    for named in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut named.cluster {
            cluster.certificate_authority = None;
        }
    }
    RUNTIME.block_on(async {
        let options = KubeConfigOptions::default();
        match Config::from_custom_kubeconfig(kubeconfig, &options).await {
            Ok(config) => {
                if let Err(error) = client(config) {
                    assert!(error.to_string().ends_with('.'), "{error}");
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}
