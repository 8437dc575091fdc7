//! Plays small random worlds on the real control plane and compares them with the engine. This test
//! shares none of the engine's assumptions.
//!
//! `WORLDS` is the number of worlds and `SEED` chooses them; `make explore` plays 500 of a new
//! seed. A disagreement is shrunk as far as possible. Its line of JSON should be added to
//! `cases.jsonl`, whose worlds are played each time.

mod agreement;
mod objects;
mod play;
mod world;

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use agreement::{Comparison, compare};
pub(crate) use objects::TAINT;
use world::World;

use crate::stage;

/// The default number of worlds.
const WORLDS: u64 = 40;

/// The number of smaller worlds that are tried to explain a disagreement.
const SHRINKING_STEPS: usize = 12;

const CASES: &str = include_str!("cases.jsonl");

/// The number of comparisons in each category.
static TALLY: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

static SEED: LazyLock<u64> = LazyLock::new(|| number("SEED").unwrap_or(1));

/// A world to play, with its name.
pub(crate) struct Lot {
    pub(crate) name: String,
    draw: Draw,
}

enum Draw {
    Kept(&'static str),
    Number(u64),
}

/// The kept worlds, and the random ones of the seed.
pub(crate) fn lots() -> Vec<Lot> {
    let kept = CASES.lines().enumerate().map(|(line, case)| Lot {
        name: format!("world kept in line {} of cases.jsonl", line + 1),
        draw: Draw::Kept(case),
    });
    let drawn = (0..number("WORLDS").unwrap_or(WORLDS)).map(|number| Lot {
        name: format!("world {number} of seed {}", *SEED),
        draw: Draw::Number(number),
    });
    kept.chain(drawn).collect()
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

impl Lot {
    /// Plays the world.
    ///
    /// # Errors
    ///
    /// The disagreement, shrunk as far as possible, or the reason for which it cannot be played.
    pub(crate) fn play(&self, shared: &stage::World) -> Result<(), String> {
        match self.draw {
            Draw::Kept(case) => {
                let world: World = serde_json::from_str(case).map_err(|it| it.to_string())?;
                let comparison = tallied(compare(shared, &world)?);
                if comparison.differs() {
                    return Err(format!("{world}\n{comparison}"));
                }
            }
            Draw::Number(number) => {
                let mut tree = draw(number)?;
                let comparison = tallied(compare(shared, &tree.current())?);
                if comparison.differs() {
                    let drawn = tree.current();
                    eprintln!("World {number} differs and is made smaller.\n{drawn}\n{comparison}");
                    let (smallest, comparison) = shrink(shared, &mut tree, comparison)?;
                    return Err(format!("{smallest}\n{comparison}It was drawn as\n{drawn}"));
                }
            }
        }
        Ok(())
    }
}

/// The random generator for the world with this number.
pub(crate) fn runner(seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config::default(), rng)
}

fn draw(number: u64) -> Result<impl ValueTree<Value = World>, String> {
    let mut runner = runner(*SEED, number);
    World::any()
        .new_tree(&mut runner)
        .map_err(|reason| reason.to_string())
}

/// The smallest known world that still disagrees.
fn shrink(
    shared: &stage::World,
    tree: &mut impl ValueTree<Value = World>,
    comparison: Comparison,
) -> Result<(World, Comparison), String> {
    let mut smallest = (tree.current(), comparison);
    for _ in 0..SHRINKING_STEPS {
        let moved = if tree.current() == smallest.0 {
            tree.simplify()
        } else {
            tree.complicate()
        };
        if !moved {
            break;
        }
        let comparison = compare(shared, &tree.current())?;
        if comparison.differs() {
            smallest = (tree.current(), comparison);
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

/// Prints the number of worlds in each category, if any were played.
pub(crate) fn print_tally() {
    let Ok(tally) = TALLY.lock() else { return };
    let worlds: usize = tally.values().sum();
    if worlds > 0 {
        println!("{worlds} worlds of seed {} and of cases.jsonl:", *SEED);
        for (words, count) in tally.iter() {
            println!("- {count} {words}");
        }
    }
}
