//! Connects to the API server.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout_at};
use tower::Service;
use tower::layer::layer_fn;

use super::status::Statuses;
use super::watch::root_cause;
use engine::model::server_version::ServerVersion;

/// The timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which a connection may be silent before it counts as dead: more than a watch lasts
/// plus the 90 s for which an idle connection is kept.
const READ_TIMEOUT: Duration = Duration::from_secs(240);

/// The cluster to connect to, and the user whose rights count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The kubeconfig file; `None` for that of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context; `None` for the current one or, in a pod without a kubeconfig, for
    /// the cluster in which the pod runs.
    pub context: Option<String>,
    /// The user whose rights count, if not the user of the kubeconfig.
    pub impersonate: Option<String>,
    /// The groups of that user.
    pub impersonate_groups: Vec<String>,
}

/// A reason why there is no connection to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is neither a kubeconfig nor a service account.
    #[error(
        "Set KUBECONFIG to your kubeconfig: no cluster is known. The kubeconfig names none ({kubeconfig}), and this program does not run in a pod with a service account ({in_cluster})."
    )]
    NoCluster {
        /// The error in the kubeconfig.
        kubeconfig: String,
        /// The error in the service account.
        in_cluster: String,
    },
    /// The kubeconfig file cannot be used.
    #[error(
        "The kubeconfig {} cannot be used: {reason}. Check --kubeconfig and --context.",
        file.display()
    )]
    File {
        /// The file.
        file: PathBuf,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// The kubeconfig has no such context.
    #[error(
        "The context \"{context}\" cannot be used: {reason}. `kubectl config get-contexts` lists the contexts."
    )]
    Context {
        /// The requested context.
        context: String,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// Certificates, keys or proxies in the configuration do not work.
    #[error(
        "The kubeconfig has no usable entry for {url}: {reason}. Correct its cluster or user entry."
    )]
    Client {
        /// The API server's address.
        url: String,
        /// The error.
        reason: String,
    },
    /// The API server does not respond.
    #[error(
        "The API server at {url} does not answer: {reason}. Check that the cluster is up and that its address in the kubeconfig is right."
    )]
    NoAnswer {
        /// The API server's address.
        url: String,
        /// The error.
        reason: String,
    },
}

/// Requests the API server's version, for callers that do not want to wait for it to come up. The
/// second value is a sentence if the behaviour of that version is not known.
///
/// # Errors
///
/// Fails if the API server does not respond by `deadline`. A refusal is a response.
pub async fn reach(
    config: &Config,
    deadline: Instant,
) -> Result<(ServerVersion, Option<String>), ConnectError> {
    let url = config.cluster_url.to_string();
    let client = client(config.clone())?;
    let reason = match timeout_at(deadline, server_version(&client)).await {
        Ok(Ok(version)) => return Ok(version),
        Ok(Err(error)) => root_cause(&error),
        Err(_) => "no answer in time".to_owned(),
    };
    Err(ConnectError::NoAnswer { url, reason })
}

/// The version of the API server, and a sentence if its behaviour is not known. A refusal is a
/// version that is not known.
pub(super) async fn server_version(
    client: &Client,
) -> Result<(ServerVersion, Option<String>), kube::Error> {
    match client.apiserver_version().await {
        Ok(info) => Ok(ServerVersion::read(&info.git_version)),
        Err(kube::Error::SerdeError(_)) => Ok(ServerVersion::read("")),
        Err(kube::Error::Api(_)) => Ok((ServerVersion::default(), None)),
        Err(error) => Err(error),
    }
}

impl Access {
    /// Reads the kubeconfig or the pod's service account.
    ///
    /// # Errors
    ///
    /// Fails if there is neither, or if the context is not in the kubeconfig.
    pub async fn config(&self) -> Result<Config, ConnectError> {
        let mut config = self.read().await?;
        // The kubeconfig may name a user to impersonate, too; this one replaces it.
        if let Some(user) = &self.impersonate {
            let groups = self.impersonate_groups.clone();
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = Some(groups).filter(|groups| !groups.is_empty());
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        Ok(config)
    }

    /// The kubeconfig's name for the cluster; `None` without a kubeconfig, as in a pod.
    pub fn cluster_name(&self) -> Option<String> {
        let kubeconfig = self.kubeconfig()?;
        let current = self.context.clone().or(kubeconfig.current_context)?;
        let named = kubeconfig.contexts.into_iter().find(|context| context.name == current)?;
        Some(named.context?.cluster)
    }

    /// The names of the kubeconfig's contexts.
    pub fn contexts(&self) -> Vec<String> {
        let contexts = self.kubeconfig().map(|kubeconfig| kubeconfig.contexts);
        contexts.into_iter().flatten().map(|context| context.name).collect()
    }

    fn kubeconfig(&self) -> Option<Kubeconfig> {
        match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => Kubeconfig::read(),
        }
        .ok()
    }

    async fn read(&self) -> Result<Config, ConnectError> {
        let options =
            KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if let Some(file) = &self.kubeconfig {
            let read = async {
                let kubeconfig = Kubeconfig::read_from(file)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await
            };
            return read.await.map_err(|error| ConnectError::File {
                file: file.clone(),
                reason: error.to_string(),
            });
        }
        let error = match Config::from_kubeconfig(&options).await {
            Ok(config) => return Ok(config),
            Err(error) => error.to_string(),
        };
        match &self.context {
            Some(context) => Err(ConnectError::Context { context: context.clone(), reason: error }),
            None => Config::incluster().map_err(|in_cluster| ConnectError::NoCluster {
                kubeconfig: error,
                in_cluster: in_cluster.to_string(),
            }),
        }
    }
}

/// A client for the API server of `config`.
///
/// # Errors
///
/// Fails if certificates, keys or proxies in it do not work.
pub fn client(config: Config) -> Result<Client, ConnectError> {
    checked(config, Client::try_from)
}

/// A client that records in `statuses` the resources for which the API server responds.
pub(super) fn listening_client(
    config: Config,
    statuses: &Arc<Statuses>,
) -> Result<Client, ConnectError> {
    let listen = layer_fn(|inner| Listening { inner, statuses: Arc::clone(statuses) });
    checked(config, |config| {
        let builder = ClientBuilder::try_from(config)?;
        Ok(builder.with_layer(&listen).build())
    })
}

/// Builds a client, unless the token is not a valid header value, most likely because of a line
/// break. The client library sends the token as a header and would panic.
fn checked(
    config: Config,
    build: impl FnOnce(Config) -> Result<Client, kube::Error>,
) -> Result<Client, ConnectError> {
    let url = config.cluster_url.to_string();
    let unusable = |reason| ConnectError::Client { url, reason };
    let token = config.auth_info.token.as_ref();
    match token.map(|token| HeaderValue::from_bytes(token.expose_secret().as_bytes())) {
        Some(Err(_)) => Err(unusable(
            "the user's token contains a line break or another control character".to_owned(),
        )),
        _ => build(config).map_err(|error| unusable(root_cause(&error))),
    }
}

/// Records successful responses: in a quiet cluster, a resumed watch has no event for a long time.
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
