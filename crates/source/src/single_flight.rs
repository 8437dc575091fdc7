//! Requests in flight. Each is sent once, however many callers wait for its response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use super::lock;
use engine::snapshot::LookupRequest;

/// The requests in flight, and their callers.
pub(super) struct SingleFlight<R>(Mutex<HashMap<LookupRequest, Flight<R>>>);

/// A request in flight.
struct Flight<R> {
    response: Arc<OnceCell<R>>,
    /// The number of callers that wait for it.
    callers: usize,
}

impl<R> Default for SingleFlight<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<R: Clone> SingleFlight<R> {
    /// The response to `request`, from `send` or from another caller's request. The response to a
    /// request that was in flight before this call counts only if it `may_be_older`.
    pub(super) async fn response<F>(
        &self,
        request: &LookupRequest,
        may_be_older: impl Fn(&R) -> bool,
        send: impl Fn() -> F,
    ) -> R
    where
        F: Future<Output = R>,
    {
        let (caller, is_new) = self.join(request);
        let response = caller.wait(&send).await;
        if is_new || may_be_older(&response) {
            return response;
        }
        drop(caller);
        // Whoever sends this request, it begins after this call.
        let (later_caller, _) = self.join(request);
        later_caller.wait(&send).await
    }

    /// Joins the request in flight or starts a new one, and says whether it is new.
    fn join<'a>(&'a self, request: &'a LookupRequest) -> (Caller<'a, R>, bool) {
        let mut flights = lock(&self.0);
        let is_new = !flights.contains_key(request);
        let flight = flights
            .entry(request.clone())
            .or_insert_with(|| Flight { response: Arc::new(OnceCell::new()), callers: 0 });
        flight.callers += 1;
        let caller = Caller { flights: self, response: Arc::clone(&flight.response), request };
        (caller, is_new)
    }
}

/// One of the callers that wait for a response. The request is no longer in flight once it has
/// a response or its last caller is dropped.
struct Caller<'a, R> {
    flights: &'a SingleFlight<R>,
    response: Arc<OnceCell<R>>,
    request: &'a LookupRequest,
}

impl<R: Clone> Caller<'_, R> {
    /// Waits for the response. The first caller sends the request; if it is dropped, the next
    /// one does.
    async fn wait<F: Future<Output = R>>(&self, send: impl Fn() -> F) -> R {
        self.response.get_or_init(send).await.clone()
    }
}

impl<R> Drop for Caller<'_, R> {
    fn drop(&mut self) {
        let mut flights = lock(&self.flights.0);
        let Some(flight) = flights.get_mut(self.request) else {
            return;
        };
        if !Arc::ptr_eq(&flight.response, &self.response) {
            return;
        }
        flight.callers -= 1;
        if flight.callers == 0 || flight.response.initialized() {
            flights.remove(self.request);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::*;
    use engine::model::object::ObjectKind;

    const CALLERS: usize = 20;

    fn request(name: &str) -> LookupRequest {
        LookupRequest { kind: ObjectKind::Node, namespace: "".into(), name: name.into() }
    }

    /// The number of requests that are sent for twenty concurrent callers.
    async fn sent(may_be_older: bool) -> usize {
        let flights = SingleFlight::default();
        let request = request("n1");
        let sent = AtomicUsize::new(0);
        let all_wait = Notify::new();
        let send = || async {
            let number = sent.fetch_add(1, Ordering::Relaxed) + 1;
            match number {
                1 => all_wait.notified().await,
                _ => yield_now().await,
            }
            number
        };
        let callers = join_all((0..CALLERS).map(|_| async {
            let response = flights.response(&request, |_| may_be_older, &send).await;
            assert!(response >= 1);
        }));
        // They are polled in turn, so the first response comes when all of them wait.
        tokio::join!(callers, async { all_wait.notify_one() });
        assert!(lock(&flights.0).is_empty());
        sent.into_inner()
    }

    #[tokio::test]
    async fn a_request_is_sent_once_and_twice_if_its_response_must_be_new() {
        assert_eq!(sent(true).await, 1);
        assert_eq!(sent(false).await, 2);
    }

    #[tokio::test]
    async fn the_next_caller_takes_over_from_one_that_is_dropped() {
        let flights = SingleFlight::default();
        let request = request("n1");
        let never = || std::future::pending::<u8>();
        let dropped = flights.response(&request, |_| true, never);
        let next = flights.response(&request, |_| true, || async { 7 });
        let drops = async {
            tokio::select! {
                biased;
                _ = dropped => unreachable!(),
                () = yield_now() => {}
            }
        };
        let ((), response) = tokio::join!(drops, next);
        assert_eq!(response, 7);
        assert!(lock(&flights.0).is_empty());
    }
}
