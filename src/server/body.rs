//! Reading a request body within its bounds.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Bytes, HttpBody};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::Limits;

/// Bodies up to this size take no share of the memory budget; the bound on
/// reviews in flight is theirs.
const UNCOUNTED: usize = 64 * 1024;

/// The budget is counted in units of this many bytes, because a semaphore
/// counts in `u32`.
const UNIT: usize = 1024;

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// Larger than [`Limits::body`], declared or found.
    TooLarge,
    /// Not complete within [`Limits::body_read`].
    TooSlow,
    /// No share of [`Limits::body_memory`] within [`Limits::wait`].
    NoMemory,
    /// The client went away or broke the protocol.
    Interrupted,
}

/// The memory that large bodies share.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    /// A budget that fits at least one body of the largest size.
    pub(super) fn new(limits: &Limits) -> Self {
        Self(Arc::new(Semaphore::new(
            limits.body_memory.max(limits.body).div_ceil(UNIT),
        )))
    }

    async fn reserve(
        &self,
        bytes: usize,
        limits: &Limits,
    ) -> Result<OwnedSemaphorePermit, BodyError> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| BodyError::TooLarge)?;
        match timeout(limits.wait, Arc::clone(&self.0).acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(BodyError::NoMemory),
        }
    }
}

/// A whole body, holding its share of the budget until dropped.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// Reads a body to its end.
///
/// A body that arrives in one frame, as most reviews do, is not copied. The
/// share is taken only once 64 KiB have really arrived: a client that merely
/// announces a large body holds nothing up. It is then taken whole, because
/// bodies that took it piece by piece could all wait for each other.
pub(super) async fn receive<B>(
    body: &mut B,
    limits: &Limits,
    budget: &Budget,
) -> Result<Received, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let declared = match body.size_hint().exact() {
        Some(length) => Some(
            usize::try_from(length)
                .ok()
                .filter(|length| *length <= limits.body)
                .ok_or(BodyError::TooLarge)?,
        ),
        None => None,
    };
    match timeout(limits.body_read, assemble(body, declared, limits, budget)).await {
        Ok(result) => result,
        Err(_) => Err(BodyError::TooSlow),
    }
}

async fn assemble<B>(
    body: &mut B,
    declared: Option<usize>,
    limits: &Limits,
    budget: &Budget,
) -> Result<Received, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut share = None;
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    while let Some(data) = next_data(body).await? {
        let length = first.len() + whole.len() + data.len();
        if length > limits.body {
            return Err(BodyError::TooLarge);
        }
        if length > UNCOUNTED && share.is_none() {
            let bytes = declared.unwrap_or(limits.body);
            share = Some(budget.reserve(bytes, limits).await?);
        }
        if first.is_empty() && whole.is_empty() {
            first = data;
            continue;
        }
        // Room for the announced length only once its share is taken.
        let announced = declared.unwrap_or(length);
        let room = match share {
            Some(_) => announced,
            None => announced.min(UNCOUNTED),
        };
        whole.reserve(room.saturating_sub(whole.len()));
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&data);
    }
    Ok(Received {
        bytes: if whole.is_empty() {
            first
        } else {
            whole.into()
        },
        _share: share,
    })
}

/// Reads and forgets what a refused client still sends, up to twice the
/// largest body and within the body's own deadline.
///
/// Over HTTP/1.1 a server that answers and closes while the client is still
/// sending resets the connection, and the client then sees the reset in place
/// of the answer.
pub(super) async fn discard<B>(body: &mut B, limits: &Limits)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let read = async {
        let mut left = limits.body.saturating_mul(2);
        while let Ok(Some(data)) = next_data(body).await {
            match left.checked_sub(data.len()) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // A client that is still sending at the deadline gets its answer anyway.
    let _ = timeout(limits.body_read, read).await;
}

/// The next non-empty piece of data; trailers are skipped.
async fn next_data<B>(body: &mut B) -> Result<Option<Bytes>, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyError::Interrupted),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                Ok(_) | Err(_) => {}
            },
        }
    }
}
