//! Reaching the API server.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout_at};
use tower_layer::layer_fn;
use tower_service::Service;

use super::status::Statuses;
use super::watch::root_cause;
use kube_protobuf::watch::InProtobuf;

/// A connection that cannot be made in this time will not be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Silence on a connection after which it counts as dead. Longer than a watch
/// may last plus the 90 s that an idle connection is kept for.
const READ_TIMEOUT: Duration = Duration::from_secs(240);

/// Which cluster to talk to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The kubeconfig file. `None`: the one of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context. `None`: the current one or, in a pod without a
    /// kubeconfig, the cluster the pod runs in.
    pub context: Option<String>,
    /// The user whose rights count, where that is not the one of the kubeconfig.
    pub impersonate: Option<String>,
}

/// Why the API server cannot be talked to at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Neither a kubeconfig nor a service account.
    #[error(
        "No cluster is known: the kubeconfig gives none ({kubeconfig}), and this does not run in a pod with a service account ({in_cluster}). Set KUBECONFIG to the file that says where the cluster is."
    )]
    NoCluster {
        /// What is wrong with the kubeconfig.
        kubeconfig: String,
        /// What is missing of the service account.
        in_cluster: String,
    },
    /// A kubeconfig file that cannot be used.
    #[error(
        "The kubeconfig {} cannot be used: {reason}. Check --kubeconfig and --context.",
        file.display()
    )]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A context that the kubeconfig does not give.
    #[error(
        "The context \"{context}\" cannot be used: {reason}. `kubectl config get-contexts` lists the contexts there are."
    )]
    Context {
        /// The context asked for.
        context: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Certificates, keys or proxies in the configuration that do not work.
    #[error(
        "No client can be made for {url} from the kubeconfig: {reason}. Correct the cluster or user entry there."
    )]
    Client {
        /// The API server's address.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody answers.
    #[error(
        "The API server at {url} does not answer: {reason}. Check that the cluster is up and that the kubeconfig names its address."
    )]
    NoAnswer {
        /// The API server's address.
        url: String,
        /// What came instead of an answer.
        reason: String,
    },
}

/// Asks the API server for its version, so that whoever does not want to wait for
/// it to come up knows at once whether it is there.
///
/// # Errors
///
/// When nobody answers by `deadline`. A server that refuses to tell is there.
pub async fn reach(config: &Config, deadline: Instant) -> Result<(), ConnectError> {
    let url = config.cluster_url.to_string();
    let client = client(config.clone())?;
    let reason = match timeout_at(deadline, client.apiserver_version()).await {
        Ok(Ok(_) | Err(kube::Error::Api(_))) => return Ok(()),
        Ok(Err(error)) => root_cause(&error),
        Err(_) => "no answer in time".to_owned(),
    };
    Err(ConnectError::NoAnswer { url, reason })
}

impl Access {
    /// Reads the kubeconfig or the pod's service account.
    ///
    /// # Errors
    ///
    /// When neither is there, or the context is not in the kubeconfig.
    pub async fn config(&self) -> Result<Config, ConnectError> {
        let config = match (&self.kubeconfig, &self.context) {
            (Some(file), _) => self.read_file(file).await,
            (None, Some(context)) => from_context(context).await,
            (None, None) => from_surroundings().await,
        };
        config.map(|mut config| {
            // The kubeconfig may name one, too.
            if let Some(user) = &self.impersonate {
                config.auth_info.impersonate = Some(user.clone());
            }
            config.connect_timeout = Some(CONNECT_TIMEOUT);
            config.read_timeout = Some(READ_TIMEOUT);
            config
        })
    }

    async fn read_file(&self, file: &Path) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let read = async {
            let kubeconfig = Kubeconfig::read_from(file)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await
        };
        read.await.map_err(|error| ConnectError::File {
            file: file.to_owned(),
            reason: error.to_string(),
        })
    }
}

async fn from_context(context: &str) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions {
        context: Some(context.to_owned()),
        ..KubeConfigOptions::default()
    };
    Config::from_kubeconfig(&options)
        .await
        .map_err(|error: KubeconfigError| ConnectError::Context {
            context: context.to_owned(),
            reason: error.to_string(),
        })
}

async fn from_surroundings() -> Result<Config, ConnectError> {
    match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
        Ok(config) => Ok(config),
        Err(kubeconfig) => Config::incluster().map_err(|in_cluster| ConnectError::NoCluster {
            kubeconfig: kubeconfig.to_string(),
            in_cluster: in_cluster.to_string(),
        }),
    }
}

/// A client for the API server of `config`.
///
/// # Errors
///
/// When certificates, keys or proxies in it do not work.
pub fn client(config: Config) -> Result<Client, ConnectError> {
    check_token(&config)?;
    let url = config.cluster_url.to_string();
    Client::try_from(config).map_err(|error| unusable(url, &error))
}

/// A client that notes in `statuses` which resources the API server answers for.
pub(super) fn listening_client(
    config: Config,
    statuses: &Arc<Statuses>,
) -> Result<Client, ConnectError> {
    check_token(&config)?;
    let url = config.cluster_url.to_string();
    let listen = layer_fn(|inner| Listening {
        inner,
        statuses: Arc::clone(statuses),
    });
    ClientBuilder::try_from(config)
        .map(|builder| {
            let in_protobuf = layer_fn(InProtobuf::new);
            builder.with_layer(&in_protobuf).with_layer(&listen).build()
        })
        .map_err(|error| unusable(url, &error))
}

/// A token is sent as a header, and the client library panics over one that cannot be:
/// one with a line break in it, most likely.
fn check_token(config: &Config) -> Result<(), ConnectError> {
    let token = config.auth_info.token.as_ref();
    match token.map(|token| HeaderValue::from_bytes(token.expose_secret().as_bytes())) {
        Some(Err(_)) => Err(ConnectError::Client {
            url: config.cluster_url.to_string(),
            reason: "the user's token contains a line break or another control character"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

fn unusable(url: String, error: &kube::Error) -> ConnectError {
    ConnectError::Client {
        url,
        reason: root_cause(error),
    }
}

/// A watch that is taken up again in a quiet cluster brings no event for a long
/// time. That it was answered shows only here.
struct Listening<S> {
    inner: S,
    statuses: Arc<Statuses>,
}

impl<S, B> Service<Request<Body>> for Listening<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let statuses = Arc::clone(&self.statuses);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if answer.status().is_success() {
                statuses.answered(&path);
            }
            Ok(answer)
        })
    }
}
