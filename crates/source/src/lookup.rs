//! Objects that the cache has not heard of yet.
//!
//! `kubectl apply -f` sends a namespace, a claim, its Deployment and an
//! autoscaler milliseconds apart, and a cache is always a little behind. A
//! decision is pure and cannot wait, so it is made twice: the first time it notes
//! each object it missed, those are asked for live, all at once, and the second
//! time the answers are there. The usual review misses nothing and pays nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use kube::{Api, Client};
use tokio::time::{Instant, timeout_at};

use engine::snapshot::{Lookup, LookupRequest, StoredObject};

use super::limiter::Limiter;
use super::resource::{RawObject, Watched};
use super::single_flight::SingleFlight;

/// Questions to the API server at the same time; further ones wait their turn
/// within their deadline. A flood of reviews must not become one of questions.
const AT_ONCE: usize = 32;

/// How many of them may be about one namespace.
const OF_A_NAMESPACE: usize = 8;

/// An object that was missed this often within [`MEMORY`] is not asked for again
/// in that time. Twice is what somebody needs who creates it between two reviews.
const REPEATED: u32 = 3;

const MEMORY: Duration = Duration::from_secs(1);

/// Misses that are remembered at the same time.
const MOST_MISSES: usize = 4096;

type Answer = Lookup<StoredObject>;

/// Asks the API server for single objects, each question once however many ask.
///
/// No object is remembered: an answer that is kept is a cache again, behind like
/// the other one. That an object is absent is remembered for a moment where it
/// was missed again and again, and never by those who ask for a [`Age::New`]
/// answer.
pub(super) struct ObjectLookup {
    single_flight: SingleFlight<Answer>,
    limiter: Limiter,
    misses: Misses,
    counts: Counts,
}

/// How many answers there were of each kind.
#[derive(Debug, Default)]
struct Counts {
    found: AtomicU64,
    absent: AtomicU64,
    unanswered: AtomicU64,
}

/// How old an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// It may come from a question of another review that is under way.
    Any,
    /// It is asked for from now on.
    New,
}

impl Default for ObjectLookup {
    fn default() -> Self {
        Self {
            single_flight: SingleFlight::default(),
            limiter: Limiter::new(AT_ONCE, OF_A_NAMESPACE),
            misses: Misses::default(),
            counts: Counts::default(),
        }
    }
}

impl ObjectLookup {
    /// The objects as the API server has them. What it has not answered by
    /// `deadline` is `NotSynced`.
    pub(super) async fn ask(
        &self,
        client: &Client,
        questions: Vec<LookupRequest>,
        age: Age,
        deadline: Instant,
    ) -> Vec<(LookupRequest, Answer)> {
        let answers = questions.into_iter().map(|question| async move {
            let answer = timeout_at(deadline, self.ask_one(client, &question, age)).await;
            let answer = answer.unwrap_or(Lookup::NotSynced);
            self.counts.of(&answer).fetch_add(1, Ordering::Relaxed);
            (question, answer)
        });
        join_all(answers).await
    }

    /// How many objects were asked for, by what came of it: a name for metrics.
    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        let Counts {
            found,
            absent,
            unanswered,
        } = &self.counts;
        [
            ("found", found),
            ("absent", absent),
            ("unanswered", unanswered),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    async fn ask_one(&self, client: &Client, question: &LookupRequest, age: Age) -> Answer {
        if age == Age::Any && self.misses.is_repeated(question) {
            return Lookup::Absent;
        }
        let answer = self.ask_api_server(client, question, age).await;
        if answer == Lookup::Absent {
            self.misses.add(question);
        }
        answer
    }

    async fn ask_api_server(&self, client: &Client, question: &LookupRequest, age: Age) -> Answer {
        // Somebody else's question may have been answered just before the object
        // came to be.
        let may_be_older = |answer: &Answer| age == Age::Any && *answer != Lookup::Absent;
        let ask = || async {
            let _turn = self.limiter.take(&question.namespace).await;
            get(client, question).await
        };
        self.single_flight.ask(question, may_be_older, ask).await
    }
}

impl Counts {
    const fn of(&self, answer: &Answer) -> &AtomicU64 {
        match answer {
            Lookup::Found(_) => &self.found,
            Lookup::Absent => &self.absent,
            Lookup::NotSynced => &self.unanswered,
        }
    }
}

/// The objects that were asked for and absent a moment ago.
#[derive(Default)]
struct Misses(Mutex<HashMap<LookupRequest, Miss>>);

struct Miss {
    since: Instant,
    times: u32,
}

impl Misses {
    fn is_repeated(&self, question: &LookupRequest) -> bool {
        let misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        misses
            .get(question)
            .is_some_and(|miss| miss.times >= REPEATED && miss.since.elapsed() < MEMORY)
    }

    fn add(&self, question: &LookupRequest) {
        let mut misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if misses.len() >= MOST_MISSES {
            misses.retain(|_, miss| miss.since.elapsed() < MEMORY);
        }
        if let Some(miss) = misses.get_mut(question)
            && miss.since.elapsed() < MEMORY
        {
            miss.times += 1;
        } else if misses.len() < MOST_MISSES || misses.contains_key(question) {
            let miss = Miss {
                since: Instant::now(),
                times: 1,
            };
            misses.insert(question.clone(), miss);
        }
    }
}

async fn get(client: &Client, question: &LookupRequest) -> Answer {
    let LookupRequest {
        kind,
        namespace,
        name,
    } = question;
    let Some(watched) = Watched::of(*kind) else {
        return Lookup::NotSynced;
    };
    let resource = watched.api_resource();
    let objects: Api<RawObject> = if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    };
    let error = match objects.get_opt(name).await {
        Ok(None) => return Lookup::Absent,
        Ok(Some(raw)) => match raw.read(*kind) {
            Ok(object) => {
                return StoredObject::of(object).map_or(Lookup::NotSynced, Lookup::Found);
            }
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    tracing::warn!(
        resource = watched.plural(), %namespace, %name, error,
        "An object missing from the cache could not be looked up."
    );
    Lookup::NotSynced
}
