//! Claims that the cache has not heard of yet.
//!
//! `kubectl apply -f` sends a claim and its Deployment milliseconds apart, and a
//! cache is always a little behind. A decision is pure and cannot wait, so it is
//! made twice: the first time it notes each claim it missed, those are asked for
//! live, all at once, and the second time their answers are there. The usual
//! review misses nothing and pays nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use kube::{Api, Client};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::model::Text;
use crate::model::claim::Claim;
use crate::model::cluster::Lookup;
use crate::model::object::{Object, ObjectKind};

use super::resource::{Raw, WATCHED};

/// Questions to the API server at the same time; further ones wait their turn
/// within their deadline. A flood of reviews must not become one of questions.
const AT_ONCE: usize = 32;

/// Namespace and name of a claim.
pub(super) type ClaimName = (Text, Text);

type Answer = Lookup<Arc<Claim>>;

/// Asks the API server for single claims, each question once however many ask.
///
/// Nothing is remembered: an answer that is kept is a cache again, behind like
/// the other one, and the moment at which a missing claim is created is the very
/// moment at which it is asked for.
pub(super) struct LateClaims {
    asked: Mutex<HashMap<ClaimName, Arc<OnceCell<Answer>>>>,
    turns: Semaphore,
}

impl Default for LateClaims {
    fn default() -> Self {
        Self {
            asked: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl LateClaims {
    /// The claims as the API server has them. What it has not answered by
    /// `deadline` is `NotSynced`.
    pub(super) async fn ask(
        &self,
        client: &Client,
        names: Vec<ClaimName>,
        deadline: Instant,
    ) -> Vec<(ClaimName, Answer)> {
        let questions = names.into_iter().map(|name| async move {
            let answer = timeout_at(deadline, self.ask_one(client, &name)).await;
            (name, answer.unwrap_or(Lookup::NotSynced))
        });
        join_all(questions).await
    }

    async fn ask_one(&self, client: &Client, name: &ClaimName) -> Answer {
        if !is_name(&name.0) || !is_name(&name.1) {
            return Lookup::Absent;
        }
        let (cell, own) = self.join(name);
        let answer = self.settle(&cell, client, name).await;
        if own || answer != Lookup::Absent {
            return answer;
        }
        // Somebody else's question may have been answered just before the claim
        // came to be. One that begins now is late enough.
        let (cell, _) = self.join(name);
        self.settle(&cell, client, name).await
    }

    /// The question that is under way, or a new one.
    fn join(&self, name: &ClaimName) -> (Arc<OnceCell<Answer>>, bool) {
        let mut asked = self.lock();
        if let Some(cell) = asked.get(name) {
            return (Arc::clone(cell), false);
        }
        let cell = Arc::new(OnceCell::new());
        asked.insert(name.clone(), Arc::clone(&cell));
        (cell, true)
    }

    /// Waits for the answer. Whoever came first asks; when they give up, the
    /// next one does.
    async fn settle(
        &self,
        cell: &Arc<OnceCell<Answer>>,
        client: &Client,
        name: &ClaimName,
    ) -> Answer {
        let leave = Leave {
            claims: self,
            cell,
            name,
        };
        let answer = cell
            .get_or_init(|| async {
                let Ok(_turn) = self.turns.acquire().await else {
                    return Lookup::NotSynced;
                };
                get(client, name).await
            })
            .await
            .clone();
        drop(leave);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClaimName, Arc<OnceCell<Answer>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a question once it is answered, or once nobody waits for it any more,
/// also where the one who waits is dropped.
struct Leave<'a> {
    claims: &'a LateClaims,
    cell: &'a Arc<OnceCell<Answer>>,
    name: &'a ClaimName,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut asked = self.claims.lock();
        let same = asked
            .get(self.name)
            .is_some_and(|cell| Arc::ptr_eq(cell, self.cell));
        // Two references: the map's and this one's.
        if same && (self.cell.initialized() || Arc::strong_count(self.cell) <= 2) {
            asked.remove(self.name);
        }
    }
}

async fn get(client: &Client, (namespace, name): &ClaimName) -> Answer {
    let Some(watched) = WATCHED
        .iter()
        .find(|watched| watched.kind == ObjectKind::Claim)
    else {
        return Lookup::NotSynced;
    };
    let claims: Api<Raw> = Api::namespaced_with(client.clone(), namespace, &watched.api_resource());
    let error = match claims.get_opt(name).await {
        Ok(None) => return Lookup::Absent,
        Ok(Some(raw)) => match raw.read(ObjectKind::Claim) {
            Ok(Object::Claim(claim)) => return Lookup::Found(Arc::new(claim)),
            Ok(_) => return Lookup::NotSynced,
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    tracing::warn!(%namespace, %name, error, "A claim that the cache lacks could not be asked for.");
    Lookup::NotSynced
}

/// Whether an object can have that name (RFC 1123 subdomain, as Kubernetes
/// demands of claims and namespaces). Anything else would also change the path
/// of the question.
fn is_name(name: &str) -> bool {
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    bytes.len() <= 253
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| edge(Some(byte)) || matches!(byte, b'-' | b'.'))
}
