//! Turns to query the API server. No single client can take the last one.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use engine::model::Text;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::lock;

/// The client on whose behalf the API server is queried.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The namespace of the object under review.
    pub namespace: &'a str,
    /// The address of a client that did not prove its identity.
    pub stranger: Option<IpAddr>,
}

/// A bounded number of turns. One namespace can only have a part of them. Of the clients that did
/// not prove their identity, each address has one turn of its own, and all of them share half of
/// the turns besides. The API server may be such a client: others take the last turn from it only
/// if they have more addresses than half the number of turns.
pub(super) struct Turns {
    all: Arc<Semaphore>,
    /// The key contains the client, too, because anybody can name a namespace.
    namespaces: Shares<(Text, Option<IpAddr>)>,
    own: Shares<IpAddr>,
    further: Arc<Semaphore>,
}

/// A turn, which is held until it is dropped.
pub(super) struct Turn(#[allow(dead_code, reason = "held")] Vec<OwnedSemaphorePermit>);

impl Turns {
    pub(super) fn new(count: usize, of_a_namespace: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(count)),
            namespaces: Shares::new(of_a_namespace),
            own: Shares::new(1),
            further: Arc::new(Semaphore::new(count / 2)),
        }
    }

    /// Waits for a turn; `None` if there is none by `deadline`.
    pub(super) async fn take(&self, asker: Asker<'_>, deadline: Instant) -> Option<Turn> {
        // Clients that wait for their own share do not keep others waiting.
        let namespace = self.namespaces.share((asker.namespace.into(), asker.stranger));
        let own = asker.stranger.map(|address| self.own.share(address));
        let taken = async {
            let mut permits = vec![namespace.acquire_owned().await.ok()?];
            if let Some(own) = own {
                let further = Arc::clone(&self.further);
                permits.push(tokio::select! {
                    biased;
                    permit = own.acquire_owned() => permit.ok()?,
                    permit = further.acquire_owned() => permit.ok()?,
                });
            }
            permits.push(Arc::clone(&self.all).acquire_owned().await.ok()?);
            Some(Turn(permits))
        };
        timeout_at(deadline, taken).await.ok().flatten()
    }
}

/// The turns that each key may have.
struct Shares<K> {
    each: usize,
    taken: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> Shares<K> {
    fn new(each: usize) -> Self {
        Self { each, taken: Mutex::default() }
    }

    fn share(&self, key: K) -> Arc<Semaphore> {
        let mut taken = lock(&self.taken);
        // Every client that has a turn or waits for one holds its share.
        taken.retain(|_, share| Arc::strong_count(share) > 1);
        let share = taken.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.each)));
        Arc::clone(share)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn neither_a_namespace_nor_strangers_take_the_last_turn() {
        let turns = Turns::new(16, 4);
        let address = |last| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let take = async |namespace: &str, stranger| {
            let soon = Instant::now() + Duration::from_millis(1);
            let asker = Asker { namespace, stranger };
            turns.take(asker, soon).await
        };
        let mut held = Vec::new();
        for expected in [true, true, true, true, false] {
            let turn = take("tenant", None).await;
            assert_eq!(turn.is_some(), expected);
            held.extend(turn);
        }
        held.clear();
        // Two addresses take all turns that they can get, and name the namespaces that others will
        // name.
        let mut of = [0, 0];
        for number in 0..32 {
            let turn = take(&format!("named-{}", number / 2), address(number % 2)).await;
            of[usize::from(number % 2)] += usize::from(turn.is_some());
            held.extend(turn);
        }
        assert_eq!(of.iter().sum::<usize>(), 8 + 2, "{of:?}");
        for number in 2..8 {
            let turn = take("named-0", address(number)).await;
            assert!(turn.is_some(), "the API server at {number}");
            held.extend(turn);
        }
        // Together they have all turns, and a returned turn is free again.
        assert!(take("shop", None).await.is_none());
        held.pop();
        assert!(take("shop", None).await.is_some());
        held.clear();
        drop(take("shop", None).await);
        assert_eq!(turns.namespaces.taken.lock().unwrap().len(), 1);
    }
}
