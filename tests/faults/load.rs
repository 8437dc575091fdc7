//! Requests that go on while something breaks, each of them counted.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use crate::harness::patient;

/// Nothing here takes this long; a row that waits for it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// What came of one request.
pub(crate) enum Came {
    /// The answer that was expected.
    Right,
    /// No answer, or one that says that there is none.
    Failed(String),
    /// Another answer than the one that was expected.
    Wrong(String),
}

/// A request that did not come out right.
pub(crate) struct Miss {
    /// When it was sent.
    pub(crate) sent: Instant,
    /// When it had come to an end.
    pub(crate) ended: Instant,
    /// What was said in place of the answer.
    pub(crate) said: String,
}

/// What came of all requests.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) sent: usize,
    pub(crate) failed: Vec<Miss>,
    pub(crate) wrong: Vec<Miss>,
    /// From the first request to the last answer.
    pub(crate) took: Duration,
}

impl Tally {
    /// Counts one more.
    pub(crate) fn count(&mut self, sent: Instant, came: Came) {
        self.sent += 1;
        let ended = Instant::now();
        let miss = |said| Miss { sent, ended, said };
        match came {
            Came::Right => {}
            Came::Failed(said) => self.failed.push(miss(said)),
            Came::Wrong(said) => self.wrong.push(miss(said)),
        }
    }

    /// Takes over what another has counted.
    pub(crate) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed.extend(other.failed);
        self.wrong.extend(other.wrong);
    }

    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        #[allow(
            clippy::cast_precision_loss,
            reason = "no row sends as many as would be rounded"
        )]
        let sent = self.sent as f64;
        sent / self.took.as_secs_f64()
    }
}

/// How many ask at once, and how often all of them together.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Each waits for its answer before it asks again.
    pub(crate) askers: usize,
    /// At most so many requests a second.
    pub(crate) rate: f64,
}

/// Requests without an end. Dropping it ends them too.
pub(crate) struct Load {
    runtime: Handle,
    began: Instant,
    stop: watch::Sender<bool>,
    answered: watch::Receiver<usize>,
    askers: JoinSet<Tally>,
}

impl Load {
    /// Begins to `ask`, which gets the number of the request.
    pub(crate) fn start<A, F>(runtime: &Handle, pace: Pace, ask: A) -> Self
    where
        A: Fn(usize) -> F + Clone + Send + 'static,
        F: Future<Output = Came> + Send,
    {
        let (stop, stopped) = watch::channel(false);
        let (count, answered) = watch::channel(0);
        let Pace { askers, rate } = pace;
        #[allow(clippy::cast_precision_loss, reason = "there are a few")]
        let between = Duration::from_secs_f64(askers as f64 / rate);
        let mut all = JoinSet::new();
        for first in 0..askers {
            let (ask, count, stopped) = (ask.clone(), count.clone(), stopped.clone());
            let asker = async move {
                let mut tally = Tally::default();
                let mut turn = interval(between);
                turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for number in (first..).step_by(askers) {
                    turn.tick().await;
                    if *stopped.borrow() {
                        break;
                    }
                    let sent = Instant::now();
                    tally.count(sent, ask(number).await);
                    count.send_modify(|count| *count += 1);
                }
                tally
            };
            all.spawn_on(asker, runtime);
        }
        Self {
            runtime: runtime.clone(),
            began: Instant::now(),
            askers: all,
            stop,
            answered,
        }
    }

    /// Waits until so many more have come to an end, however it was.
    pub(crate) fn until_more(&self, more: usize) -> Result<(), String> {
        let mut answered = self.answered.clone();
        let wanted = *answered.borrow() + more;
        let enough = async { answered.wait_for(|count| *count >= wanted).await.is_ok() };
        match self.runtime.block_on(timeout_of(enough)) {
            Some(true) => Ok(()),
            _ => Err(format!(
                "{more} more requests did not come to an end within {} s.",
                DEADLINE.as_secs()
            )),
        }
    }

    /// Lets requests go on until then.
    pub(crate) fn until(&self, then: Instant) {
        self.runtime
            .block_on(async { sleep_until(then.into()).await });
    }

    /// Sends no more, and waits for the answers under way.
    pub(crate) fn end(mut self) -> Tally {
        self.stop.send_replace(true);
        let mut all = Tally::default();
        let next = async |askers: &mut JoinSet<Tally>| timeout_of(askers.join_next()).await;
        while let Some(tally) = self
            .runtime
            .block_on(next(&mut self.askers))
            .expect("every request comes to an end")
        {
            all.add(tally.unwrap());
        }
        all.took = self.began.elapsed();
        all
    }
}

async fn timeout_of<F: Future>(future: F) -> Option<F::Output> {
    timeout(patient(DEADLINE), future).await.ok()
}
