//! Explores many configurations in parallel, each distinct one once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::configuration::Configuration;
use crate::explore::{Worst, explore};

/// The results for many configurations, by their normal form.
pub(crate) struct Survey {
    pub(crate) known: HashMap<Configuration, Worst>,
}

impl Survey {
    /// Explores the configurations, and those that `needed` returns for each of them, on every
    /// core.
    pub(crate) fn of(
        configurations: &[Configuration],
        needed: impl Fn(&Configuration) -> Vec<Configuration> + Sync,
    ) -> Self {
        let normal = in_parallel(configurations, |some| {
            let all = some.iter().flat_map(&needed).chain(some.iter().cloned());
            all.map(|configuration| configuration.normal()).collect::<HashSet<_>>()
        });
        let distinct: HashSet<Configuration> = normal.into_iter().flatten().collect();
        let known = in_parallel(&Vec::from_iter(distinct), |some| {
            some.iter()
                .map(|configuration| (configuration.clone(), explore(configuration)))
                .collect::<Vec<_>>()
        });
        Self { known: known.into_iter().flatten().collect() }
    }

    /// The result of exploring this configuration.
    pub(crate) fn worst(&self, configuration: &Configuration) -> Worst {
        let normal = configuration.normal();
        match self.known.get(&normal) {
            Some(worst) => worst.clone(),
            None => explore(&normal),
        }
    }
}

/// The number of neighbouring items that are processed together.
const CHUNK: usize = 256;

/// Does the same work for all items on every core, one chunk of neighbouring items at a time.
pub(crate) fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&[I]) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(chunk) = items.chunks(CHUNK).nth(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(work(chunk));
        }
        done
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let done = running.into_iter().map(|thread| thread.join().unwrap());
        done.flatten().collect()
    })
}
