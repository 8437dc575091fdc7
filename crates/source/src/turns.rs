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
    /// The address of a client that is not known to be an API server.
    pub stranger: Option<IpAddr>,
}

/// The part of everything shared that all strangers have together. They can have any number of
/// addresses, so the rest is kept for the API servers.
const OF_STRANGERS: usize = 4;

/// The parts of a shared number that API servers and strangers have.
pub(super) const fn parts(count: usize) -> [usize; 2] {
    [count - count / OF_STRANGERS, count / OF_STRANGERS]
}

/// A bounded number of turns. One namespace can only have a part of those of the API servers, and
/// one address half of those of the strangers.
pub(super) struct Turns {
    known: Arc<Semaphore>,
    namespaces: Shares<Text>,
    strangers: Arc<Semaphore>,
    addresses: Shares<IpAddr>,
}

/// A turn, which is held until it is dropped.
pub(super) struct Turn(#[allow(dead_code, reason = "held")] [OwnedSemaphorePermit; 2]);

impl Turns {
    pub(super) fn new(count: usize, of_a_namespace: usize) -> Self {
        let [known, strangers] = parts(count);
        Self {
            known: Arc::new(Semaphore::new(known)),
            namespaces: Shares::new(of_a_namespace),
            strangers: Arc::new(Semaphore::new(strangers)),
            addresses: Shares::new(strangers.div_ceil(2)),
        }
    }

    /// Waits for a turn; `None` if there is none by `deadline`.
    pub(super) async fn take(&self, asker: Asker<'_>, deadline: Instant) -> Option<Turn> {
        let (share, all) = match asker.stranger {
            None => (self.namespaces.share(asker.namespace.into()), &self.known),
            Some(address) => (self.addresses.share(address), &self.strangers),
        };
        // Clients that wait for their own share do not keep others waiting.
        let taken = async {
            let share = share.acquire_owned().await.ok()?;
            Some(Turn([share, Arc::clone(all).acquire_owned().await.ok()?]))
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
        let turns = Turns::new(16, 8);
        let address = |last| Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let take = async |namespace: &str, stranger| {
            let soon = Instant::now() + Duration::from_millis(1);
            let asker = Asker { namespace, stranger };
            turns.take(asker, soon).await
        };
        // Each has its turns while those before it hold theirs.
        let mut held = Vec::new();
        for (namespace, stranger, expected) in [
            ("tenant", address(1), 2),
            ("shop", address(1), 0),
            ("tenant", address(2), 2),
            ("shop", address(3), 0),
            ("tenant", None, 8),
            ("shop", None, 4),
            ("bank", None, 0),
        ] {
            let mut count = 0;
            while let Some(turn) = take(namespace, stranger).await {
                held.push(turn);
                count += 1;
            }
            assert_eq!(count, expected, "{namespace} {stranger:?}");
        }
        held.pop();
        assert!(take("shop", None).await.is_some(), "a returned turn is free again");
        held.clear();
        drop(take("shop", None).await);
        assert_eq!(turns.namespaces.taken.lock().unwrap().len(), 1);

        let few = Turns::new(4, 1);
        let asker = Asker { namespace: "shop", stranger: address(1) };
        assert!(few.take(asker, Instant::now()).await.is_some(), "the only turn of the strangers");
    }
}
