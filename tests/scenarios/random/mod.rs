//! Plays small random clusters on the real control plane and compares them with the engine. This
//! test shares none of the engine's assumptions.
//!
//! `CLUSTERS` is the number of clusters and `SEED` chooses them; `make explore` plays 500 of a new
//! seed. A disagreement is shrunk as far as possible. Its line of JSON should be added to [`KEPT`],
//! whose clusters are played each time.

mod agreement;
mod objects;
mod play;
mod random_cluster;

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use agreement::{Comparison, compare};
pub(crate) use objects::TAINT;
use random_cluster::RandomCluster;

use crate::scenario_run::Testbed;

/// The default number of clusters.
const CLUSTERS: u64 = 40;

/// The number of smaller clusters that are tried to explain a disagreement.
const SHRINKING_STEPS: usize = 12;

/// Random clusters in which the engine was wrong, as JSON.
const KEPT: &[&str] = &[];

/// The number of comparisons in each category.
static TALLY: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

static SEED: LazyLock<u64> = LazyLock::new(|| number("SEED").unwrap_or(1));

/// A cluster to play, with its name.
pub(crate) struct Lot {
    pub(crate) name: String,
    draw: Draw,
}

enum Draw {
    Kept(&'static str),
    Number(u64),
}

/// The kept clusters, and the random ones of the seed.
pub(crate) fn lots() -> Vec<Lot> {
    let kept = KEPT.iter().enumerate().map(|(number, case)| Lot {
        name: format!("random cluster {number} of those kept"),
        draw: Draw::Kept(case),
    });
    let drawn = (0..number("CLUSTERS").unwrap_or(CLUSTERS)).map(|number| Lot {
        name: format!("random cluster {number} of seed {}", *SEED),
        draw: Draw::Number(number),
    });
    kept.chain(drawn).collect()
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

impl Lot {
    /// Plays the cluster.
    ///
    /// # Errors
    ///
    /// The disagreement, shrunk as far as possible, or the reason for which it cannot be played.
    pub(crate) fn play(&self, shared: &Testbed) -> Result<(), String> {
        match self.draw {
            Draw::Kept(case) => {
                let cluster: RandomCluster =
                    serde_json::from_str(case).map_err(|error| error.to_string())?;
                let comparison = tallied(compare(shared, &cluster)?);
                if comparison.differs() {
                    return Err(format!("{cluster}\n{comparison}"));
                }
            }
            Draw::Number(number) => {
                let mut tree = draw(number)?;
                let comparison = tallied(compare(shared, &tree.current())?);
                if comparison.differs() {
                    let drawn = tree.current();
                    eprintln!(
                        "Cluster {number} differs and is made smaller.\n{drawn}\n{comparison}"
                    );
                    let (smallest, comparison) = shrink(shared, &mut tree, comparison)?;
                    return Err(format!("{smallest}\n{comparison}It was drawn as\n{drawn}"));
                }
            }
        }
        Ok(())
    }
}

/// The random generator for the cluster with this number.
pub(crate) fn runner(seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config::default(), rng)
}

fn draw(number: u64) -> Result<impl ValueTree<Value = RandomCluster>, String> {
    let mut runner = runner(*SEED, number);
    RandomCluster::any().new_tree(&mut runner).map_err(|reason| reason.to_string())
}

/// The smallest known cluster that still disagrees.
fn shrink(
    shared: &Testbed,
    tree: &mut impl ValueTree<Value = RandomCluster>,
    comparison: Comparison,
) -> Result<(RandomCluster, Comparison), String> {
    let mut smallest = (tree.current(), comparison);
    for _ in 0..SHRINKING_STEPS {
        let moved = if tree.current() == smallest.0 { tree.simplify() } else { tree.complicate() };
        if !moved {
            break;
        }
        let smaller = compare(shared, &tree.current())?;
        if smaller.differs() {
            smallest = (tree.current(), smaller);
        }
    }
    Ok(smallest)
}

fn tallied(comparison: Comparison) -> Comparison {
    if let Ok(mut tally) = TALLY.lock() {
        *tally.entry(comparison.words.clone()).or_default() += 1;
    }
    comparison
}

/// Prints the number of clusters in each category, if any were played.
pub(crate) fn print_tally() {
    let Ok(tally) = TALLY.lock() else { return };
    let clusters: usize = tally.values().sum();
    if clusters > 0 {
        println!("{clusters} random clusters of seed {} and of those kept:", *SEED);
        for (words, count) in tally.iter() {
            println!("- {count} {words}");
        }
    }
}
