//! Replicas look and act in any order, while the Secret is deleted and corrupted, replicas restart,
//! clocks are set and months pass: the API server trusts every certificate that they serve.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use proptest::prelude::*;

use super::bundle::Bundle;
use super::plan::{Configuration, Reason, Seen, Spread, Trust, Write};
use super::stored::{Data, IssuedSecret, with_new_authority, with_new_certificate};
use super::{Lifetimes, Pace};
use crate::clock::Clocks;
use crate::pair::ServingPair;

const REPLICAS: usize = 3;

/// The hours by which a clock is ahead: it is behind, right, ahead by hours, or by months.
const CLOCKS: [i64; 4] = [-72, 0, 10, 2400];

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
    ClockSet(usize, i64),
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
        1 => replica.clone().prop_map(Event::Restart),
        1 => (replica, prop::sample::select(&CLOCKS))
            .prop_map(|(replica, ahead)| Event::ClockSet(replica, ahead)),
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
    /// The hours by which its clock is ahead.
    ahead: i64,
    /// Whether its clock was too wrong when it last acted. Such a replica is not ready.
    is_off: bool,
    /// Whether it is an older version, which knows only its own clock.
    is_old: bool,
}

/// The objects with their versions.
#[derive(Clone)]
struct Objects {
    secret: Arc<IssuedSecret>,
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
    replicas: Vec<Replica>,
}

fn start() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn names() -> Vec<String> {
    vec!["multi-attach-guard.shop.svc".to_owned()]
}

fn spread() -> Spread {
    let Pace { settled, forgotten, .. } = Pace::default();
    Spread { settled, forgotten }
}

impl Simulation {
    /// Starts with this Secret, whose CA alone is in the caBundles.
    fn new(replicas: Vec<Replica>, secret: Arc<IssuedSecret>) -> Self {
        let now = start();
        let authorities = secret.issued().map(|issued| issued.authority.certificate_pem());
        let bundle = Bundle::read(authorities.unwrap_or_default().as_bytes());
        let bundles = [(0, bundle.clone()), (0, bundle)];
        let written = bundles.each_ref().map(|(_, written)| vec![(now, written.clone())]);
        Self { now, objects: Objects { secret, secret_version: 0, bundles }, written, replicas }
    }

    fn happens(&mut self, event: &Event) {
        match *event {
            Event::Look(replica) => self.look(replica),
            Event::Act(replica) => self.act(replica),
            Event::Seconds(seconds) => self.now += SignedDuration::from_secs(seconds),
            Event::Weeks(weeks) => {
                self.now += SignedDuration::from_hours(7 * 24 * weeks);
                self.settles();
            }
            Event::SecretDeleted => self.put(None),
            Event::SecretSpoiled => {
                let rubbish = ("tls.crt".to_owned(), ByteString(vec![1]));
                self.put(Some(&[rubbish].into()));
            }
            Event::Restart(replica) => {
                let ahead = self.replicas[replica].ahead;
                self.replicas[replica] = Replica { ahead, ..Replica::default() };
            }
            Event::ClockSet(replica, ahead) => self.replicas[replica].ahead = ahead,
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

    /// Whether the API server accepts the certificate that the replica serves.
    fn accepts(&self, replica: &Replica) -> bool {
        replica.serving.as_deref().is_some_and(|pair| {
            pair.is_current(self.now) && self.believed().iter().all(|bundle| bundle.accepts(pair))
        })
    }

    /// Sets all clocks right, and returns whether all replicas come to serve the stored certificate,
    /// which the API server accepts.
    fn heals(&mut self) -> bool {
        for replica in &mut self.replicas {
            replica.ahead = 0;
        }
        self.settles();
        let stored = &self.objects.secret;
        self.replicas.iter().all(|replica| {
            let both = stored.issued().zip(replica.serving.as_deref());
            both.is_some_and(|(issued, pair)| issued.pair.is(pair)) && self.accepts(replica)
        })
    }

    /// Lets all replicas look and act, as they do every minute, until nothing is left to do.
    fn settles(&mut self) {
        for _ in 0..4 {
            for replica in 0..self.replicas.len() {
                self.look(replica);
                self.act(replica);
            }
            self.now += SignedDuration::from_secs(60);
        }
    }

    fn put(&mut self, data: Option<&Data>) {
        self.objects.secret = Arc::new(IssuedSecret::read(data));
        self.objects.secret_version += 1;
    }

    fn look(&mut self, replica: usize) {
        self.replicas[replica].seen = Some(self.objects.clone());
    }

    fn act(&mut self, replica: usize) {
        let replica = &mut self.replicas[replica];
        let Some(seen) = replica.seen.take() else {
            return;
        };
        let names = names();
        let configurations = [0, 1].map(|at| Configuration {
            kind: ["Mutating", "Validating"][at],
            resource_version: seen.bundles[at].0.to_string(),
            bundles: vec![("workloads".to_owned(), seen.bundles[at].1.clone())],
        });
        let clocks = Clocks {
            own: self.now + SignedDuration::from_hours(replica.ahead),
            api_server: (!replica.is_old).then_some(self.now),
        };
        replica.is_off = clocks.disagreement().is_some();
        let serving = replica.serving.clone();
        let mut facts = Seen {
            stored: &seen.secret,
            configurations: Some(&configurations),
            serving: serving.as_deref(),
            trusted_for: None,
            names: &names,
            clocks,
        };
        let running = self.now.duration_since(Timestamp::UNIX_EPOCH);
        facts.trusted_for = replica.trust.lasts(&facts, running.try_into().unwrap());
        let mut plan = facts.plan(spread());
        // The older version waits until a certificate is valid.
        plan.write.take_if(|write| {
            let (Write::Authority(reason) | Write::Certificate(_, reason)) = write;
            replica.is_old && matches!(reason, Reason::Premature(..))
        });
        if let Some(write) = &plan.write {
            let (now, lifetimes) = (clocks.now(), Lifetimes::default());
            let data = match write {
                Write::Authority(_) => with_new_authority(&names, now, lifetimes),
                Write::Certificate(issued, _) => {
                    with_new_certificate(&issued.authority, &names, now, lifetimes)
                }
            };
            if self.objects.secret_version == seen.secret_version {
                self.put(Some(&data.unwrap()));
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
            replica.serving = seen.secret.issued().map(|issued| Arc::clone(&issued.pair));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_shown_is_trusted(events in proptest::collection::vec(event(), 1..60)) {
        let replicas = (0..REPLICAS).map(|_| Replica::default()).collect();
        let mut simulation = Simulation::new(replicas, Arc::new(IssuedSecret::Absent));
        simulation.settles();
        for (number, event) in events.iter().enumerate() {
            simulation.happens(event);
            let settled = SignedDuration::try_from(spread().settled).unwrap();
            for replica in &simulation.replicas {
                // The API server calls only replicas that are ready.
                let asked = !replica.is_off
                    && replica.began.is_some_and(|began| began + settled <= simulation.now);
                prop_assert!(!asked || simulation.accepts(replica), "{number}: {event:?}");
            }
        }
        prop_assert!(simulation.heals());
    }
}

/// The Secret that two replicas find.
#[derive(Clone, Copy, Debug)]
enum Found {
    Nothing,
    /// That of an older version whose clock is so many hours ahead.
    OfOlderVersion(i64),
    /// That of the first replica, which serves its certificate.
    OfFirst,
}

/// Two replicas with any clocks look and act in any order and go on for some minutes. Then their
/// clocks are set right. The second replica may be an older version.
#[test]
fn certificates_heal_whatever_the_clocks_did() {
    let mut worlds = vec![Found::Nothing, Found::OfFirst];
    worlds.extend(CLOCKS.map(Found::OfOlderVersion));
    for found in worlds {
        let secret = Arc::new(match found {
            Found::Nothing | Found::OfFirst => IssuedSecret::Absent,
            Found::OfOlderVersion(ahead) => {
                let now = start() + SignedDuration::from_hours(ahead);
                let data = with_new_authority(&names(), now, Lifetimes::default()).unwrap();
                IssuedSecret::read(Some(&data))
            }
        });
        for clocks in CLOCKS.into_iter().flat_map(|one| CLOCKS.map(|other| [one, other])) {
            for is_old in [false, true] {
                for order in orders() {
                    let case = format!("{found:?}, {clocks:?}, {is_old}, {order:?}");
                    let mut simulation = Simulation::new(vec![Replica::default()], secret.clone());
                    if matches!(found, Found::OfFirst) {
                        simulation.settles();
                    }
                    simulation.replicas.push(Replica { is_old, ..Replica::default() });
                    simulation.goes_wrong(clocks, &order, &case);
                    assert!(simulation.heals(), "{case}");
                }
            }
        }
    }
}

/// Every order in which two replicas look and act. One of them may act on what the other one has
/// changed since. With two turns each, the test has passed too, but took a minute and a half.
fn orders() -> impl Iterator<Item = [usize; 4]> {
    (0..1_usize << 4)
        .filter(|bits| bits.count_ones() == 2)
        .map(|bits| [0, 1, 2, 3].map(|step| bits >> step & 1))
}

impl Simulation {
    /// Sets the clocks, lets the replicas look and act in this order, then all of them go on.
    fn goes_wrong(&mut self, clocks: [i64; 2], order: &[usize], case: &str) {
        for (replica, ahead) in self.replicas.iter_mut().zip(clocks) {
            replica.ahead = ahead;
        }
        let is_served = self.accepts(&self.replicas[0]);
        let version = self.objects.secret_version;
        for replica in order {
            match self.replicas[*replica].seen {
                None => self.look(*replica),
                Some(_) => self.act(*replica),
            }
            assert!(!is_served || self.accepts(&self.replicas[0]), "{case}");
        }
        self.settles();
        let writes = |replica: &Replica| replica.is_old || !replica.is_off;
        if !self.replicas.iter().any(writes) {
            assert_eq!(self.objects.secret_version, version, "{case}");
        }
        // An older version whose clock is months ahead replaces whatever it finds.
        if !self.replicas.iter().any(|replica| replica.is_old && replica.ahead > 1000) {
            let mut right =
                self.replicas.iter().filter(|replica| !replica.is_old && !replica.is_off);
            assert!(right.all(|replica| self.accepts(replica)), "{case}");
        }
    }
}
