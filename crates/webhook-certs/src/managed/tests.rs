//! What is done when, with the time as data.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::bundle::Bundle;
use super::plan::{Configuration, RotationPlan, Seen, Spread, Write};
use super::stored::{Issued, IssuedSecret, with_new_authority, with_new_certificate};
use super::{Lifetimes, Pace};
use crate::pair::ServingPair;
use crate::pem;

const NAME: &str = "multi-attach-guard.shop.svc";
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn spread() -> Spread {
    let Pace {
        settled, forgotten, ..
    } = Pace::default();
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

/// A caBundle with the CAs of these.
fn bundle(of: &[&IssuedSecret]) -> Bundle {
    let authorities = of.iter().map(|it| issued(it).authority.certificate());
    Bundle::read(pem::certificates(authorities).as_bytes())
}

/// Both configurations, the first with one webhook and the second with two.
fn trusting(first: &[&IssuedSecret], second: &[&IssuedSecret]) -> Vec<Configuration> {
    let entry = |name: &str, of| (name.to_owned(), bundle(of));
    let configuration = |kind, bundles| Configuration {
        kind,
        resource_version: "1".to_owned(),
        bundles,
    };
    vec![
        configuration("Mutating", vec![entry("a", first)]),
        configuration("Validating", vec![entry("a", second), entry("b", second)]),
    ]
}

/// The plan in short.
fn described(plan: &RotationPlan<'_>) -> String {
    let write = plan.write.as_ref().map(|write| match write {
        Write::Authority(_) => "new authority".to_owned(),
        Write::Certificate(..) => "new certificate".to_owned(),
    });
    let patch = |it: &super::plan::Patch<'_>| {
        let kind = it.configuration.kind.to_lowercase();
        let sizes = it
            .bundles
            .iter()
            .map(|it| it.1.pem().matches("BEGIN").count());
        format!("{kind} trusts {:?}", sizes.collect::<Vec<_>>())
    };
    let patches = plan.patches.iter().map(patch);
    let serve = plan
        .serve_in
        .map(|after| format!("serve in {} s", after.as_secs()));
    let all = write.into_iter().chain(patches).chain(serve);
    all.collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_to_be_done_next() {
    let start: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let (old, new, foreign) = (made(start), made(start), made(start));
    let (absent, rubbish) = (
        IssuedSecret::Absent,
        IssuedSecret::Unusable("it has no ca.key".into()),
    );
    let renewed_late = renewed(&old, start + DAY * 240);
    let early = made(start + DAY * 3);
    let now = start + MINUTE;

    let nobody = || Some(trusting(&[], &[]));
    let just_old = || Some(trusting(&[&old], &[&old]));
    let both = || Some(trusting(&[&new, &old], &[&new, &old]));
    let just_new = || Some(trusting(&[&new], &[&new]));
    type Case<'a> = (
        &'a str,
        Timestamp,
        &'a IssuedSecret,
        Option<Vec<Configuration>>,
        Option<&'a ServingPair>,
        Option<Duration>,
        &'a str,
    );
    let cases: Vec<Case<'_>> = vec![
        (
            "first start",
            now,
            &absent,
            nobody(),
            None,
            None,
            "new authority",
        ),
        (
            "Secret deleted",
            now,
            &absent,
            just_old(),
            pair(&old),
            None,
            "new authority",
        ),
        (
            "rubbish",
            now,
            &rubbish,
            just_old(),
            pair(&old),
            None,
            "new authority",
        ),
        (
            "trusted by nobody",
            now,
            &old,
            nobody(),
            None,
            None,
            "mutating trusts [1], validating trusts [1, 1]",
        ),
        (
            "trusted by one",
            now,
            &old,
            Some(trusting(&[&old], &[])),
            None,
            None,
            "validating trusts [1, 1]",
        ),
        (
            "trusted",
            now,
            &old,
            just_old(),
            None,
            seconds(0),
            "serve in 0 s",
        ),
        ("served", now, &old, just_old(), pair(&old), seconds(60), ""),
        (
            "new authority is not trusted",
            now,
            &new,
            just_old(),
            pair(&old),
            None,
            "mutating trusts [2], validating trusts [2, 2]",
        ),
        (
            "new authority is trusted",
            now,
            &new,
            both(),
            pair(&old),
            seconds(3),
            "serve in 7 s",
        ),
        (
            "settled",
            now,
            &new,
            both(),
            pair(&old),
            seconds(10),
            "serve in 0 s",
        ),
        (
            "served, not forgotten",
            now,
            &new,
            both(),
            pair(&new),
            seconds(3599),
            "",
        ),
        (
            "forgotten",
            now,
            &new,
            both(),
            pair(&new),
            seconds(3600),
            "mutating trusts [1], validating trusts [1, 1]",
        ),
        (
            "the one served is trusted no more",
            now,
            &new,
            just_new(),
            pair(&old),
            seconds(0),
            "serve in 0 s",
        ),
        (
            "somebody else's authority in place of ours",
            now,
            &old,
            Some(trusting(&[&foreign], &[&old])),
            pair(&old),
            None,
            "mutating trusts [2]",
        ),
        (
            "certificate not due",
            start + DAY * 59,
            &old,
            just_old(),
            pair(&old),
            seconds(60),
            "",
        ),
        (
            "certificate due",
            start + DAY * 60,
            &old,
            just_old(),
            pair(&old),
            seconds(60),
            "new certificate",
        ),
        (
            "certificate renewed",
            start + DAY * 240,
            &renewed_late,
            just_old(),
            pair(&old),
            seconds(60),
            "serve in 0 s",
        ),
        (
            "authority not due",
            start + DAY * 242,
            &renewed_late,
            just_old(),
            pair(&renewed_late),
            seconds(60),
            "",
        ),
        (
            "authority due",
            start + DAY * 244,
            &renewed_late,
            just_old(),
            pair(&renewed_late),
            seconds(60),
            "new authority",
        ),
        (
            "asleep for years",
            start + DAY * 3650,
            &old,
            just_old(),
            pair(&old),
            seconds(60),
            "new authority",
        ),
        (
            "clock before that of whoever made it",
            now,
            &early,
            Some(trusting(&[&early, &old], &[&early, &old])),
            pair(&old),
            seconds(60),
            "",
        ),
        (
            "the same, and nothing better",
            now,
            &early,
            Some(trusting(&[&early], &[&early])),
            None,
            seconds(60),
            "serve in 0 s",
        ),
        (
            "configurations unknown at the start",
            now,
            &old,
            None,
            None,
            None,
            "",
        ),
        (
            "configurations unknown",
            now,
            &new,
            None,
            pair(&old),
            None,
            "",
        ),
        (
            "a configuration is absent",
            now,
            &old,
            Some(Vec::new()),
            None,
            seconds(0),
            "serve in 0 s",
        ),
    ];
    for (case, now, stored, configurations, serving, trusted_for, expected) in &cases {
        let names = names();
        let seen = Seen {
            stored,
            configurations: configurations.as_deref(),
            serving: *serving,
            trusted_for: *trusted_for,
            names: &names,
            now: *now,
        };
        assert_eq!(described(&seen.plan(spread())), *expected, "{case}");
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
        now: start,
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
