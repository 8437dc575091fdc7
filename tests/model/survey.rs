//! Many configurations explored at once, each distinct one a single time.

use std::collections::HashMap;
use std::thread;

use crate::configuration::Configuration;
use crate::explore::{Worst, explore};

/// What is known of every configuration asked for, by its normal form.
pub(crate) struct Survey {
    known: HashMap<Configuration, Worst>,
    /// How many configurations were asked for, equal ones counted again.
    pub(crate) asked: usize,
}

impl Survey {
    /// Explores the configurations, on every core.
    pub(crate) fn of(configurations: impl Iterator<Item = Configuration>) -> Self {
        let mut asked = 0;
        let counted = configurations.inspect(|_| asked += 1);
        let distinct: HashMap<Configuration, ()> = counted
            .map(|configuration| (configuration.normal(), ()))
            .collect();
        let distinct: Vec<Configuration> = distinct.into_keys().collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let known = thread::scope(|scope| {
            let share = |thread| {
                let mine = distinct.iter().skip(thread).step_by(threads);
                scope.spawn(|| {
                    mine.map(|configuration| (configuration.clone(), explore(configuration)))
                        .collect()
                })
            };
            let running: Vec<thread::ScopedJoinHandle<'_, Vec<_>>> =
                (0..threads).map(share).collect();
            running
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        Self { known, asked }
    }

    /// Every distinct configuration with what was found.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Configuration, &Worst)> {
        self.known.iter()
    }

    pub(crate) fn states(&self) -> usize {
        self.known.values().map(|worst| worst.states).sum()
    }
}
