//! Requests to the API server with the retries that Kubernetes' own clients make: a request that
//! fails because the machine is busy is sent again. A webhook's message is an answer and is not
//! retried.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::response;
use axum::http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use kube::client::{Body, ClientBuilder, DynBody};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tower::util::BoxService;
use tower::{BoxError, Service, ServiceExt};

use super::machine::patient;

/// The time during which a failed request is sent again.
const REPEATED_FOR: Duration = Duration::from_secs(60);

/// The first and the longest pause between attempts; pauses double.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A request with an object as its body; with PATCH it is merged.
pub(crate) fn request(method: Method, path: &str, object: &Value) -> Request<Vec<u8>> {
    let format = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, format)
        .body(object.to_string().into_bytes())
        .unwrap()
}

type Answer = Response<Box<DynBody>>;
type Inner = Arc<Mutex<BoxService<Request<Body>, Answer, BoxError>>>;

/// A client with the credentials of the kubeconfig. With `user` it impersonates that user, with all
/// rights.
///
/// # Errors
///
/// A sentence if the file is not a kubeconfig.
pub(crate) async fn client(
    kubeconfig: &std::path::Path,
    user: Option<&str>,
) -> Result<kube::Client, String> {
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    // kube's own retries would hide failed attempts from `ask`.
    config.default_retry = false;
    if let Some(user) = user {
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(vec!["system:masters".to_owned()]);
    }
    let builder = ClientBuilder::try_from(config).map_err(|error| error.to_string())?;
    let layer = tower::layer::layer_fn(|inner| {
        let inner = Arc::new(Mutex::new(inner));
        tower::service_fn(move |request| ask(Arc::clone(&inner), request))
    });
    Ok(builder.with_layer(&layer).build())
}

async fn ask(inner: Inner, request: Request<Body>) -> Result<Answer, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    // Whether an earlier attempt may have succeeded although its answer was lost.
    let mut may_be_done = false;
    loop {
        let is_last = began.elapsed() >= patient(REPEATED_FOR);
        match once(&inner, request_of(&parts, &body)).await {
            Err(error) if is_last => return Err(error),
            Err(_) => may_be_done = true,
            Ok(answer) if answer.status().as_u16() < 400 => return Ok(answer),
            Ok(answer) => {
                let (head, said) = answer.into_parts();
                let said = said.collect().await?.to_bytes();
                let status: Value = serde_json::from_slice(&said).unwrap_or_default();
                if may_be_done && let Some(done) = if_done(&status, &inner, &parts, &body).await {
                    return done;
                }
                let text = String::from_utf8_lossy(&said);
                let message = status["message"].as_str().unwrap_or(&text);
                if is_last || !passes(head.status, message, &parts, &body) {
                    return Ok(rebuilt(head, said));
                }
                may_be_done |= head.status.is_server_error();
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn once(inner: &Inner, request: Request<Body>) -> Result<Answer, BoxError> {
    let answer = inner.lock().await.ready().await?.call(request);
    answer.await
}

fn request_of(parts: &Parts, body: &Bytes) -> Request<Body> {
    Request::from_parts(parts.clone(), Body::from(body.clone()))
}

fn rebuilt(head: response::Parts, body: impl Into<Bytes>) -> Answer {
    let body = Full::new(body.into()).map_err(|never| match never {});
    Response::from_parts(head, Box::new(body))
}

/// Whether an error that the API server returned for a request is temporary.
fn passes(code: StatusCode, message: &str, parts: &Parts, body: &Bytes) -> bool {
    let of_a_webhook = message.contains("webhook");
    // An eviction that a PodDisruptionBudget does not allow is answered with 429 too.
    let of_a_budget = parts.uri.path().ends_with("/eviction");
    let passes = match code.as_u16() {
        429 | 503 | 504 => true,
        500 => message.contains("timed out") || message.contains("leader changed"),
        // Another change came first. A patch without a resourceVersion can simply be sent again.
        409 if parts.method == Method::PATCH => {
            let object: Value = serde_json::from_slice(body).unwrap_or_default();
            message.contains("the object has been modified")
                && object["metadata"]["resourceVersion"].is_null()
        }
        _ => false,
    };
    passes && !of_a_webhook && !of_a_budget
}

/// The answer to a request that an earlier attempt has already carried out, as the API server's
/// error shows: the existing object for a create, success for a delete.
async fn if_done(
    status: &Value,
    inner: &Inner,
    parts: &Parts,
    body: &Bytes,
) -> Option<Result<Answer, BoxError>> {
    if parts.method == Method::POST && status["reason"] == "AlreadyExists" {
        let object: Value = serde_json::from_slice(body).ok()?;
        let name = object["metadata"]["name"].as_str()?;
        let mut get = parts.clone();
        get.method = Method::GET;
        get.uri = format!("{}/{name}", parts.uri.path()).parse().ok()?;
        return Some(once(inner, request_of(&get, &Bytes::new())).await);
    }
    if parts.method == Method::DELETE && status["code"] == 404 {
        let gone = json!({ "apiVersion": "v1", "kind": "Status", "status": "Success" });
        let (head, ()) = Response::new(()).into_parts();
        return Some(Ok(rebuilt(head, gone.to_string())));
    }
    None
}
