//! A kubeconfig, from its text to a client that could ask.

use std::sync::LazyLock;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use source::connect::client;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    // Whoever calls first decides, and so does `main`.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
});

/// A kubeconfig makes a client, or an error that says something. Nothing in it is run, and
/// no file that it names is read: what a program or a file says is not a reader's matter.
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
