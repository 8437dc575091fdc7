//! Replicas look and act in any order, while the Secret is deleted and corrupted, replicas restart
//! and months pass: the API server trusts every certificate that they serve.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use proptest::prelude::*;

use super::bundle::Bundle;
use super::plan::{Configuration, Seen, Spread, Trust, Write};
use super::stored::{Data, IssuedSecret, with_new_authority, with_new_certificate};
use super::{Lifetimes, Pace};
use crate::pair::ServingPair;

const REPLICAS: usize = 3;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Look(usize),
    Act(usize),
    Seconds(i64),
    Weeks(i64),
    SecretDeleted,
    SecretSpoiled,
    Restart(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let replica = 0..REPLICAS;
    prop_oneof![
        8 => replica.clone().prop_map(Event::Look),
        8 => replica.clone().prop_map(Event::Act),
        4 => (1..15i64).prop_map(Event::Seconds),
        1 => (1..4i64).prop_map(Event::Weeks),
        1 => Just(Event::SecretDeleted),
        1 => Just(Event::SecretSpoiled),
        1 => replica.prop_map(Event::Restart),
    ]
}

#[derive(Default)]
struct Replica {
    serving: Option<Arc<ServingPair>>,
    /// The time since which it serves any certificate.
    began: Option<Timestamp>,
    trust: Trust,
    /// The objects at its last look, if it has not acted on them yet.
    seen: Option<Objects>,
}

/// The objects with their versions.
#[derive(Clone)]
struct Objects {
    secret: Option<Data>,
    secret_version: u64,
    /// The bundle of the one webhook in each configuration, and the configuration's version.
    bundles: [(u64, Bundle); 2],
}

/// Replicas, the objects that they share, and the time.
struct Simulation {
    now: Timestamp,
    objects: Objects,
    /// Every state of the bundles, and the time of its write. The API server uses a new one as late
    /// as it may.
    written: [Vec<(Timestamp, Bundle)>; 2],
    replicas: [Replica; REPLICAS],
}

fn spread() -> Spread {
    let Pace { settled, forgotten, .. } = Pace::default();
    Spread { settled, forgotten }
}

impl Simulation {
    fn new() -> Self {
        let now = "2026-11-22T12:00:00Z".parse().unwrap();
        Self {
            now,
            objects: Objects { secret: None, secret_version: 0, bundles: Default::default() },
            written: [vec![(now, Bundle::default())], vec![(now, Bundle::default())]],
            replicas: Default::default(),
        }
    }

    fn happens(&mut self, event: &Event) {
        match *event {
            Event::Look(replica) => self.replicas[replica].seen = Some(self.objects.clone()),
            Event::Act(replica) => self.act(replica),
            Event::Seconds(seconds) => self.now += SignedDuration::from_secs(seconds),
            Event::Weeks(weeks) => {
                self.now += SignedDuration::from_hours(7 * 24 * weeks);
                self.settles();
            }
            Event::SecretDeleted => self.put(None),
            Event::SecretSpoiled => {
                let rubbish = ("tls.crt".to_owned(), ByteString(vec![1]));
                self.put(Some([rubbish].into()));
            }
            Event::Restart(replica) => self.replicas[replica] = Replica::default(),
        }
    }

    /// The bundles that the API server uses.
    fn believed(&self) -> [&Bundle; 2] {
        let heard_of = self.now - SignedDuration::try_from(spread().settled).unwrap();
        self.written.each_ref().map(|states| {
            let heard = states.iter().rev().find(|(time, _)| *time <= heard_of);
            &heard.unwrap_or(&states[0]).1
        })
    }

    /// Lets all replicas look and act, as they do every minute, until nothing is left to do.
    fn settles(&mut self) {
        for _ in 0..4 {
            for replica in 0..REPLICAS {
                self.replicas[replica].seen = Some(self.objects.clone());
                self.act(replica);
            }
            self.now += SignedDuration::from_secs(60);
        }
    }

    fn put(&mut self, secret: Option<Data>) {
        self.objects.secret = secret;
        self.objects.secret_version += 1;
    }

    fn act(&mut self, replica: usize) {
        let replica = &mut self.replicas[replica];
        let Some(seen) = replica.seen.take() else {
            return;
        };
        let names = vec!["multi-attach-guard.shop.svc".to_owned()];
        let stored = IssuedSecret::read(seen.secret.as_ref());
        let configurations = [0, 1].map(|at| Configuration {
            kind: ["Mutating", "Validating"][at],
            resource_version: seen.bundles[at].0.to_string(),
            bundles: vec![("workloads".to_owned(), seen.bundles[at].1.clone())],
        });
        let serving = replica.serving.clone();
        let mut facts = Seen {
            stored: &stored,
            configurations: Some(&configurations),
            serving: serving.as_deref(),
            trusted_for: None,
            names: &names,
            now: self.now,
        };
        let running = self.now.duration_since(Timestamp::UNIX_EPOCH);
        facts.trusted_for = replica.trust.lasts(&facts, running.try_into().unwrap());
        let plan = facts.plan(spread());
        if let Some(write) = &plan.write {
            let (now, lifetimes) = (self.now, Lifetimes::default());
            let data = match write {
                Write::Authority(_) => with_new_authority(&names, now, lifetimes),
                Write::Certificate(issued, _) => {
                    with_new_certificate(&issued.authority, &names, now, lifetimes)
                }
            };
            if self.objects.secret_version == seen.secret_version {
                self.put(Some(data.unwrap()));
            }
            return;
        }
        for patch in &plan.patches {
            let at = usize::from(patch.configuration.kind == "Validating");
            let current = &mut self.objects.bundles[at];
            if current.0.to_string() == patch.configuration.resource_version {
                let bundle = patch.bundles[0].1.clone();
                self.written[at].push((self.now, bundle.clone()));
                *current = (current.0 + 1, bundle);
            }
        }
        if plan.patches.is_empty() && plan.serve_in == Some(Duration::ZERO) {
            replica.began.get_or_insert(self.now);
            replica.serving = stored.issued().map(|issued| Arc::clone(&issued.pair));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_shown_is_trusted(events in proptest::collection::vec(event(), 1..60)) {
        let mut simulation = Simulation::new();
        simulation.settles();
        for (number, event) in events.iter().enumerate() {
            simulation.happens(event);
            let settled = SignedDuration::try_from(spread().settled).unwrap();
            for replica in &simulation.replicas {
                // The API server does not call a replica before it is ready.
                let asked = replica.began.is_some_and(|began| began + settled <= simulation.now);
                let (Some(pair), true) = (&replica.serving, asked) else {
                    continue;
                };
                prop_assert!(pair.is_current(simulation.now), "{number}: {event:?}");
                for believed in simulation.believed() {
                    prop_assert!(believed.accepts(pair), "{number}: {event:?}");
                }
            }
        }
        simulation.settles();
        let shown = simulation.replicas.each_ref().map(|replica| replica.serving.clone());
        for pair in &shown[1..] {
            let (first, pair) = (shown[0].as_deref(), pair.as_deref());
            prop_assert!(first.zip(pair).is_some_and(|(one, other)| one.is(other)));
        }
    }
}
