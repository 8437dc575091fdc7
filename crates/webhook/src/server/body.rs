//! Reading a request body within its bounds.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::{NoMemory, Rest, Share};
use super::limits::Limits;

/// Room for more than this much is made only once this much has arrived: a
/// client that merely announces a large body gets none.
const FIRST_ROOM: usize = 64 * 1024;

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// Larger than [`Limits::body`], declared or found.
    TooLarge,
    /// Not complete in time.
    TooSlow,
    /// Others need the memory more.
    NoMemory,
    /// The client went away or broke the protocol.
    Interrupted,
}

impl From<NoMemory> for BodyError {
    fn from(NoMemory: NoMemory) -> Self {
        Self::NoMemory
    }
}

/// How long a body may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// When it must be there.
    pub(super) until: Instant,
    /// How long it may wait for what others have, all in all.
    pub(super) for_others: Duration,
}

/// A whole body, holding its share of the budget until dropped.
pub(super) struct Received {
    pub(super) bytes: Bytes,
    /// What is left of the time for which it may wait for what others have.
    pub(super) patience: Duration,
    pub(super) share: Share,
}

/// Reads a body to its end.
///
/// Most bodies have arrived with their headers: they cost no timer, and where
/// they came in one frame no copy.
pub(super) async fn receive<B>(
    body: &mut B,
    limits: &Limits,
    mut share: Share,
    patience: Patience,
) -> Result<Received, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut whole = Whole::new(body, limits)?;
    let has_entered = share.enter_now();
    let mut ahead = None;
    while has_entered && let Some(next) = next_data(body).now_or_never() {
        let Some(data) = next? else {
            return Ok(whole.received(share, patience.for_others));
        };
        if !share.grow_now(data.len()) {
            ahead = Some(data);
            break;
        }
        whole.push(data)?;
    }
    let rest = Rest::of(&share);
    let mut left = patience.for_others;
    let reading = async {
        if !has_entered {
            rest.enter(&mut share, &mut left).await?;
        }
        loop {
            let data = match ahead.take() {
                Some(data) => data,
                None => match next_data(body).await? {
                    Some(data) => data,
                    None => return Ok(()),
                },
            };
            rest.heard(data.len());
            rest.grow(&mut share, data.len(), &mut left).await?;
            whole.push(data)?;
        }
    };
    let read: Result<(), BodyError> = tokio::select! {
        read = timeout_at(patience.until, reading) => read.unwrap_or(Err(BodyError::TooSlow)),
        () = rest.told_to_give_way() => Err(BodyError::NoMemory),
    };
    read?;
    Ok(whole.received(share, left))
}

/// The pieces of a body put together.
struct Whole {
    limit: usize,
    declared: Option<usize>,
    /// The first piece, until there is a second.
    first: Bytes,
    all: Vec<u8>,
}

impl Whole {
    fn new<B: HttpBody>(body: &B, limits: &Limits) -> Result<Self, BodyError> {
        let declared = body
            .size_hint()
            .exact()
            .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if declared.is_some_and(|length| length > limits.body) {
            return Err(BodyError::TooLarge);
        }
        Ok(Self {
            limit: limits.body,
            declared,
            first: Bytes::new(),
            all: Vec::new(),
        })
    }

    fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        let length = self.first.len() + self.all.len() + data.len();
        if length > self.limit {
            return Err(BodyError::TooLarge);
        }
        if self.first.is_empty() && self.all.is_empty() {
            self.first = data;
            return Ok(());
        }
        let announced = self.declared.unwrap_or(length);
        let room = match length > FIRST_ROOM {
            true => announced,
            false => announced.min(FIRST_ROOM),
        };
        self.all.reserve(room.saturating_sub(self.all.len()));
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.all.extend_from_slice(&data);
        Ok(())
    }

    fn received(self, share: Share, patience: Duration) -> Received {
        Received {
            patience,
            bytes: match self.all.is_empty() {
                true => self.first,
                false => self.all.into(),
            },
            share,
        }
    }
}

/// Reads and forgets what a refused client still sends, up to twice the
/// largest body and within the body's own deadline.
///
/// A client whose sending is cut short may see that in place of the answer.
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
