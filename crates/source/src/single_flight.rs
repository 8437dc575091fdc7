//! Questions that are under way, each asked once however many wait for its answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use engine::snapshot::LookupRequest;

/// The questions of one sort that are under way.
pub(super) struct SingleFlight<A>(Mutex<HashMap<LookupRequest, UnderWay<A>>>);

/// A question that is under way.
struct UnderWay<A> {
    answer: Arc<OnceCell<A>>,
    /// How many wait for it.
    waiting: usize,
}

impl<A> Default for SingleFlight<A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<A: Clone> SingleFlight<A> {
    /// The answer to the question, by `ask` or by somebody else's. An answer to what was
    /// under way before this call counts where it `may_be_older`.
    pub(super) async fn ask<F>(
        &self,
        question: &LookupRequest,
        may_be_older: impl Fn(&A) -> bool,
        ask: impl Fn() -> F,
    ) -> A
    where
        F: Future<Output = A>,
    {
        let (place, is_new) = self.join(question);
        let answer = place.settle(&ask).await;
        if is_new || may_be_older(&answer) {
            return answer;
        }
        drop(place);
        // One that begins now is new enough.
        let (place, _) = self.join(question);
        place.settle(&ask).await
    }

    /// A place at the question that is under way, or at a new one.
    fn join<'a>(&'a self, question: &'a LookupRequest) -> (Place<'a, A>, bool) {
        let mut asked = self.lock();
        let is_new = !asked.contains_key(question);
        let under_way = asked.entry(question.clone()).or_insert_with(|| UnderWay {
            answer: Arc::new(OnceCell::new()),
            waiting: 0,
        });
        under_way.waiting += 1;
        let place = Place {
            together: self,
            answer: Arc::clone(&under_way.answer),
            question,
        };
        (place, is_new)
    }
}

impl<A> SingleFlight<A> {
    fn lock(&self) -> MutexGuard<'_, HashMap<LookupRequest, UnderWay<A>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who wait for an answer. The question ends once it is answered, or
/// once nobody waits for it any more, also where the one who waits is dropped.
struct Place<'a, A> {
    together: &'a SingleFlight<A>,
    answer: Arc<OnceCell<A>>,
    question: &'a LookupRequest,
}

impl<A: Clone> Place<'_, A> {
    /// Waits for the answer. Whoever came first asks; when they give up, the
    /// next one does.
    async fn settle<F: Future<Output = A>>(&self, ask: impl Fn() -> F) -> A {
        self.answer.get_or_init(ask).await.clone()
    }
}

impl<A> Drop for Place<'_, A> {
    fn drop(&mut self) {
        let mut asked = self.together.lock();
        let Some(under_way) = asked.get_mut(self.question) else {
            return;
        };
        if !Arc::ptr_eq(&under_way.answer, &self.answer) {
            return;
        }
        under_way.waiting -= 1;
        if under_way.waiting == 0 || under_way.answer.initialized() {
            asked.remove(self.question);
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

    const ASKING: usize = 20;

    fn question(name: &str) -> LookupRequest {
        LookupRequest {
            kind: ObjectKind::Node,
            namespace: "".into(),
            name: name.into(),
        }
    }

    /// How many questions twenty who ask the same at the same time become.
    async fn asked(may_be_older: bool) -> usize {
        let together = SingleFlight::default();
        let question = question("n1");
        let number = AtomicUsize::new(0);
        let all_wait = Notify::new();
        let ask = || async {
            let number = number.fetch_add(1, Ordering::Relaxed) + 1;
            match number {
                1 => all_wait.notified().await,
                _ => yield_now().await,
            }
            number
        };
        let everybody = join_all((0..ASKING).map(|_| async {
            let answer = together.ask(&question, |_| may_be_older, &ask).await;
            assert!(answer >= 1);
        }));
        // They are polled in turn, so the first answer comes when all have asked.
        tokio::join!(everybody, async { all_wait.notify_one() });
        assert!(together.lock().is_empty());
        number.into_inner()
    }

    #[tokio::test]
    async fn a_question_is_asked_once_and_where_its_answer_must_be_new_twice() {
        assert_eq!(asked(true).await, 1);
        assert_eq!(asked(false).await, 2);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_question_to_the_next() {
        let together = SingleFlight::default();
        let question = question("n1");
        let never = || std::future::pending::<u8>();
        let given_up = together.ask(&question, |_| true, never);
        let next = together.ask(&question, |_| true, || async { 7 });
        let gives_up = async {
            tokio::select! {
                biased;
                _ = given_up => unreachable!(),
                () = yield_now() => {}
            }
        };
        let ((), answer) = tokio::join!(gives_up, next);
        assert_eq!(answer, 7);
        assert!(together.lock().is_empty());
    }
}
