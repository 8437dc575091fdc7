//! Accepting connections, and ending those whose client stalls.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum_server::accept::Accept;
use rustls::Error as TlsError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use super::limits::Limits;
use super::metrics::{Held, Metrics};

/// The length of the HTTP/2 preface. hyper reads up to this many bytes before
/// it knows the protocol, and only then starts its own header timer.
const PREFACE: usize = 24;

/// A wrong caBundle fails every review, so its log line is kept rare.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// An acceptor that bounds the number of connections and wraps each one that
/// `inner` accepted in a [`Watched`] stream.
#[derive(Clone)]
pub(super) struct Guard<A> {
    inner: A,
    slots: Arc<Semaphore>,
    limits: Limits,
    metrics: Option<Metrics>,
    warned: Arc<Mutex<Option<Instant>>>,
}

impl<A> Guard<A> {
    /// `metrics` is `None` for the admin port, which is not counted.
    pub(super) fn new(inner: A, limits: Limits, metrics: Option<Metrics>) -> Self {
        Self {
            inner,
            slots: Arc::new(Semaphore::new(
                limits.connections.clamp(1, Semaphore::MAX_PERMITS),
            )),
            limits,
            metrics,
            warned: Arc::default(),
        }
    }

    fn handshake_failed(&self, error: &io::Error) {
        if let Some(metrics) = &self.metrics {
            metrics.handshake_failed();
        }
        let cause = error.get_ref().and_then(|e| e.downcast_ref::<TlsError>());
        match cause {
            Some(TlsError::AlertReceived(alert)) if self.may_warn() => tracing::warn!(
                ?alert,
                "A client refused this server's certificate. If it was the API server, set the \
                 caBundle of the webhook configuration to the CA that signed the certificate."
            ),
            _ => tracing::debug!(%error, "A TLS handshake failed."),
        }
    }

    fn may_warn(&self) -> bool {
        let Ok(mut warned) = self.warned.lock() else {
            return false;
        };
        let due = warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if due {
            *warned = Some(Instant::now());
        }
        due
    }
}

impl<A, S> Accept<TcpStream, S> for Guard<A>
where
    A: Accept<TcpStream, S> + Clone + Send + 'static,
    A::Stream: Send + 'static,
    A::Service: Send + 'static,
    A::Future: Send + 'static,
{
    type Stream = Watched<A::Stream>;
    type Service = A::Service;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send + 'static>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            if let Some(metrics) = &self.metrics {
                metrics.connection_refused();
            }
            let full = io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections");
            return Box::pin(std::future::ready(Err(full)));
        };
        let held = self.metrics.as_ref().map(Metrics::connection_opened);
        let accepting = self.inner.accept(stream, service);
        let guard = self.clone();
        Box::pin(async move {
            match accepting.await {
                Ok((stream, service)) => {
                    let stream = Watched::new(stream, &guard.limits, (slot, held));
                    Ok((stream, service))
                }
                Err(error) => {
                    guard.handshake_failed(&error);
                    Err(error)
                }
            }
        })
    }
}

/// A stream that fails when the client sends no request at first, or leaves
/// its receive window full.
pub(super) struct Watched<S> {
    inner: S,
    /// Bytes still to come before hyper's own timers watch the reading.
    unread: usize,
    first: Option<Pin<Box<Sleep>>>,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    _held: (OwnedSemaphorePermit, Option<Held>),
}

impl<S> Watched<S> {
    fn new(inner: S, limits: &Limits, held: (OwnedSemaphorePermit, Option<Held>)) -> Self {
        Self {
            inner,
            unread: PREFACE,
            first: Some(Box::pin(sleep(limits.headers))),
            patience: limits.write_stall,
            stalled: None,
            _held: held,
        }
    }

    /// Passes the outcome of a write on, unless the client has stalled it for
    /// too long.
    fn watch_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let timer = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(cx, buf);
        let Some(timer) = &mut self.first else {
            return outcome;
        };
        if outcome.is_pending() {
            ready!(timer.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let read = buf.filled().len() - before;
        self.unread = self.unread.saturating_sub(read);
        if self.unread == 0 {
            self.first = None;
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.watch_write(cx, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch_write(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.watch_write(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.watch_write(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
