//! The stream of a connection, which ends it at its deadlines.
//!
//! A quiet connection ends as if its client had closed it, so that hyper closes it in order. A
//! connection whose requests make no progress is cut.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::connections::{ConnectionGuard, End};

/// The time between two checks of a connection.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A stream, its place among the connections, and one timer for all its deadlines.
pub(super) struct GuardedStream<S> {
    stream: S,
    guard: ConnectionGuard,
    /// The time for which it may be without a request.
    idle: Duration,
    looks: Interval,
    end: Option<End>,
}

impl<S> GuardedStream<S> {
    pub(super) fn new(stream: S, guard: ConnectionGuard, idle: Duration) -> Self {
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stream, guard, idle, looks, end: None }
    }

    /// The way in which the connection ends now. If it does not end, its task is woken when it may.
    fn end(&mut self, cx: &mut Context<'_>) -> Option<End> {
        while self.looks.poll_tick(cx).is_ready() {
            self.end = self.guard.end(self.idle);
        }
        if self.guard.connection.poll_evicted(cx).is_ready() {
            self.end = self.end.or(Some(End::Close));
        }
        self.end
    }
}

impl<S: AsyncWrite + Unpin> GuardedStream<S> {
    /// Writes, unless the connection is cut.
    fn write<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self.end(cx) {
            Some(End::Cut) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Some(End::Close) | None => write(Pin::new(&mut self.stream), cx),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.end(cx) {
            Some(End::Cut) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Some(End::Close) => Poll::Ready(Ok(())),
            None => Pin::new(&mut self.stream).poll_read(cx, buffer),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, S::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, S::poll_shutdown)
    }
}
