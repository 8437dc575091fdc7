//! Requests that continue while a fault happens, each of them counted.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::harness::patient;

/// The time limit for any wait. No step takes this long; a row that reaches it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The number of parallel askers. Each waits for its answer before it asks again.
const ASKERS: u32 = 16;

/// The result of one request.
pub(crate) enum Came {
    /// The expected answer.
    Right,
    /// No answer, or one that reports a failure.
    Failed(String),
    /// An answer that was not expected.
    Wrong(String),
}

/// A request without the expected answer.
pub(crate) struct Miss {
    /// The time at which it was sent.
    pub(crate) sent: Instant,
    /// The time at which it ended.
    pub(crate) ended: Instant,
    /// The text that came instead of the expected answer.
    pub(crate) said: String,
}

/// The results of all requests.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) sent: usize,
    pub(crate) failed: Vec<Miss>,
    pub(crate) wrong: Vec<Miss>,
    /// The time from the first request to the last answer.
    pub(crate) took: Duration,
}

impl Tally {
    /// Counts one more request.
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
}

/// Requests without end. Dropping it stops them too.
pub(crate) struct Load {
    runtime: Handle,
    began: Instant,
    stop: watch::Sender<bool>,
    answered: watch::Receiver<usize>,
    askers: JoinSet<Tally>,
}

impl Load {
    /// Starts to call `ask` with the number of the request, at most `rate` times a second.
    pub(crate) fn start<A, F>(runtime: &Handle, rate: u32, ask: A) -> Self
    where
        A: Fn(usize) -> F + Clone + Send + 'static,
        F: Future<Output = Came> + Send,
    {
        let (stop, stopped) = watch::channel(false);
        let (count, answered) = watch::channel(0);
        let between = Duration::from_secs(ASKERS.into()) / rate;
        let mut all = JoinSet::new();
        for first in 0..ASKERS as usize {
            let (ask, count, stopped) = (ask.clone(), count.clone(), stopped.clone());
            let asker = async move {
                let mut tally = Tally::default();
                let mut turn = interval(between);
                turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for number in (first..).step_by(ASKERS as usize) {
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
        Self { runtime: runtime.clone(), began: Instant::now(), askers: all, stop, answered }
    }

    /// Waits until `more` further requests have ended, with any result.
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

    /// Stops sending, and waits for the remaining answers.
    pub(crate) fn end(mut self) -> Tally {
        self.stop.send_replace(true);
        let mut all = Tally::default();
        let next = async |askers: &mut JoinSet<Tally>| timeout_of(askers.join_next()).await;
        while let Some(tally) =
            self.runtime.block_on(next(&mut self.askers)).expect("every request comes to an end")
        {
            let tally = tally.unwrap();
            all.sent += tally.sent;
            all.failed.extend(tally.failed);
            all.wrong.extend(tally.wrong);
        }
        all.took = self.began.elapsed();
        all
    }
}

async fn timeout_of<F: Future>(future: F) -> Option<F::Output> {
    timeout(patient(DEADLINE), future).await.ok()
}
