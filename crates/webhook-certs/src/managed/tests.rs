//! The table of which step is taken in which state, with the time as data.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::bundle::Bundle;
use super::plan::{Configuration, RotationPlan, Seen, Spread, Write};
use super::stored::{Issued, IssuedSecret, with_new_authority, with_new_certificate};
use super::{Lifetimes, Pace};
use crate::clock::Clocks;
use crate::pair::ServingPair;
use crate::pem;

const NAME: &str = "multi-attach-guard.shop.svc";
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn spread() -> Spread {
    let Pace { settled, forgotten, .. } = Pace::default();
    Spread { settled, forgotten }
}

fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

fn made(now: Timestamp) -> IssuedSecret {
    let data = with_new_authority(&names(), now, Lifetimes::default());
    IssuedSecret::read(Some(&data.unwrap()))
}

fn renewed(stored: &IssuedSecret, now: Timestamp) -> IssuedSecret {
    let authority = &issued(stored).authority;
    let data = with_new_certificate(authority, &names(), now, Lifetimes::default());
    IssuedSecret::read(Some(&data.unwrap()))
}

fn issued(stored: &IssuedSecret) -> &Issued {
    stored.issued().unwrap()
}

fn pair(stored: &IssuedSecret) -> Option<&ServingPair> {
    Some(&issued(stored).pair)
}

/// A caBundle with the CAs of these Secrets.
fn bundle(of: &[&IssuedSecret]) -> Bundle {
    let authorities = of.iter().map(|stored| issued(stored).authority.certificate());
    Bundle::read(pem::certificates(authorities).as_bytes())
}

/// Both configurations, the first with one webhook and the second with two.
fn trusting(first: &[&IssuedSecret], second: &[&IssuedSecret]) -> Vec<Configuration> {
    let entry = |name: &str, of| (name.to_owned(), bundle(of));
    let configuration =
        |kind, bundles| Configuration { kind, resource_version: "1".to_owned(), bundles };
    vec![
        configuration("Mutating", vec![entry("a", first)]),
        configuration("Validating", vec![entry("a", second), entry("b", second)]),
    ]
}

/// A short description of the plan.
fn described(plan: &RotationPlan<'_>) -> String {
    let write = plan.write.as_ref().map(|write| match write {
        Write::Authority(_) => "new authority".to_owned(),
        Write::Certificate(..) => "new certificate".to_owned(),
    });
    let patches = plan.patches.iter().map(|patch| {
        let kind = patch.configuration.kind.to_lowercase();
        let sizes = patch.bundles.iter().map(|(_, bundle)| bundle.pem().matches("BEGIN").count());
        format!("{kind} trusts {:?}", sizes.collect::<Vec<_>>())
    });
    let serve = plan.serve_in.map(|after| format!("serve in {} s", after.as_secs()));
    write.into_iter().chain(patches).chain(serve).collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_to_be_done_next() {
    let start: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let (old, new, foreign) = (made(start), made(start), made(start));
    let (absent, rubbish) =
        (IssuedSecret::Absent, IssuedSecret::Unusable("it has no ca.key".into()));
    let renewed_late = renewed(&old, start + DAY * 240);
    // By the clocks of an older version.
    let early = made(start + DAY * 100);
    let early_by_hours = made(start + DAY * 5 / 12);
    let early_renewal = renewed(&old, start + DAY * 100);
    let behind = made(start - DAY * 100);
    let stored = |name: &str| match name {
        "absent" => Some(&absent),
        "rubbish" => Some(&rubbish),
        "old" => Some(&old),
        "new" => Some(&new),
        "renewed" => Some(&renewed_late),
        "early" => Some(&early),
        "early by hours" => Some(&early_by_hours),
        "early renewal" => Some(&early_renewal),
        "behind" => Some(&behind),
        _ => None,
    };
    let configurations = |names: &str| match names {
        "-" => None,
        "none" => Some(Vec::new()),
        "nobody" => Some(trusting(&[], &[])),
        "one" => Some(trusting(&[&old], &[])),
        "foreign" => Some(trusting(&[&foreign], &[&old])),
        "both" => Some(trusting(&[&new, &old], &[&new, &old])),
        "early, old" => Some(trusting(&[&early, &old], &[&early, &old])),
        name => stored(name).map(|secret| trusting(&[secret], &[secret])),
    };
    // The columns are the case, the time, the stored content, the trusted CAs, the served
    // certificate, the seconds for which the stored CA is trusted, and the plan.
    let table = "
        first start                         | 1m    | absent         | nobody         | -       | -    | new authority
        Secret deleted                      | 1m    | absent         | old            | old     | -    | new authority
        rubbish                             | 1m    | rubbish        | old            | old     | -    | new authority
        trusted by nobody                   | 1m    | old            | nobody         | -       | -    | mutating trusts [1], validating trusts [1, 1]
        trusted by one                      | 1m    | old            | one            | -       | -    | validating trusts [1, 1]
        trusted                             | 1m    | old            | old            | -       | 0    | serve in 0 s
        served                              | 1m    | old            | old            | old     | 60   |
        new authority is not trusted        | 1m    | new            | old            | old     | -    | mutating trusts [2], validating trusts [2, 2]
        new authority is trusted            | 1m    | new            | both           | old     | 3    | serve in 7 s
        settled                             | 1m    | new            | both           | old     | 10   | serve in 0 s
        served, not forgotten               | 1m    | new            | both           | new     | 3599 |
        forgotten                           | 1m    | new            | both           | new     | 3600 | mutating trusts [1], validating trusts [1, 1]
        the one served is trusted no more   | 1m    | new            | new            | old     | 0    | serve in 0 s
        somebody else's in place of ours    | 1m    | old            | foreign        | old     | -    | mutating trusts [2]
        certificate not due                 | 59d   | old            | old            | old     | 60   |
        certificate due                     | 60d   | old            | old            | old     | 60   | new certificate
        certificate renewed                 | 240d  | renewed        | old            | old     | 60   | serve in 0 s
        authority not due                   | 242d  | renewed        | old            | renewed | 60   |
        authority due                       | 244d  | renewed        | old            | renewed | 60   | new authority
        asleep for years                    | 3650d | old            | old            | old     | 60   | new authority
        configurations unknown at the start | 1m    | old            | -              | -       | -    |
        configurations unknown              | 1m    | new            | -              | old     | -    |
        a configuration is absent           | 1m    | old            | none           | -       | 0    | serve in 0 s
        made by a clock ahead               | 1m    | early          | early, old     | old     | 60   | new authority
        the same, trusted for an hour       | 1m    | early          | early, old     | old     | 3600 | new authority
        the same, and nothing better        | 1m    | early          | early          | -       | 60   | new authority, serve in 0 s
        the same, and no configurations     | 1m    | early          | -              | -       | -    | new authority
        renewed by a clock ahead            | 1m    | early renewal  | old            | old     | 60   | new certificate
        made by a clock hours ahead         | 1m    | early by hours | early by hours | -       | 0    | serve in 0 s
        made by a clock behind              | 1m    | behind         | behind         | -       | 60   | new certificate, serve in 0 s
    ";
    for row in table.lines().filter(|row| row.contains('|')) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [case, time, secret, trusted, serving, trusted_for, expected] = columns[..] else {
            panic!("{row}");
        };
        let after: jiff::SignedDuration = match time.strip_suffix('d') {
            Some(days) => DAY * days.parse().unwrap(),
            None => time.parse().unwrap(),
        };
        let (names, configurations) = (names(), configurations(trusted));
        let now = start + after;
        let planned = |clocks| {
            let seen = Seen {
                stored: stored(secret).unwrap(),
                configurations: configurations.as_deref(),
                serving: stored(serving).and_then(pair),
                trusted_for: trusted_for.parse().ok().map(Duration::from_secs),
                names: &names,
                clocks,
            };
            described(&seen.plan(spread()))
        };
        assert_eq!(planned(Clocks { own: now, api_server: None }), expected, "{case}");
        let only_serve = expected.split(", ").find(|step| step.starts_with("serve"));
        // Hours do not matter; a replica whose clock is off by more writes nothing.
        for (ahead, steps) in [
            (0, expected),
            (-10, expected),
            (10, expected),
            (-72, only_serve.unwrap_or_default()),
            (2400, only_serve.unwrap_or_default()),
        ] {
            let own = now + SignedDuration::from_hours(ahead);
            let clocks = Clocks { own, api_server: Some(now) };
            assert_eq!(planned(clocks), steps, "{case}, {ahead} hours ahead");
        }
    }
}

#[test]
fn a_certificate_is_for_every_name() {
    let start = Timestamp::now();
    let stored = made(start);
    let names = [NAME, "127.0.0.1"].map(str::to_owned);
    let seen = Seen {
        stored: &stored,
        configurations: None,
        serving: None,
        trusted_for: None,
        names: &names,
        clocks: Clocks { own: start, api_server: None },
    };
    assert_eq!(described(&seen.plan(spread())), "new certificate");
}

#[test]
fn expired_authorities_and_rubbish_leave_a_bundle_and_it_stays_small() {
    let start = Timestamp::now();
    let own = made(start);
    let authority = issued(&own).authority.certificate();
    let others: Vec<IssuedSecret> = (0..20).map(|_| made(start)).collect();
    let expired = made(start - DAY * 1000);
    let all: Vec<&IssuedSecret> = [&expired].into_iter().chain(&others).collect();
    let text = format!("?{}\n-----BEGIN CERTIFICATE-----\nA", bundle(&all).pem());
    let wanted = Bundle::read(text.as_bytes()).led_by(authority, true, start);
    assert!(wanted.accepts(&issued(&own).pair));
    assert!(wanted.accepts(&issued(&others[0]).pair));
    assert!(!wanted.accepts(&issued(&expired).pair));
    assert_eq!(wanted.pem().matches("BEGIN").count(), 17);
    assert!(wanted.is(&Bundle::read(wanted.pem().as_bytes())));
}
