use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::super::fake_api_server::{CLAIMS, FakeApiServer, NODES};
use super::*;
use crate::model::claim::Claim;
use crate::model::workload::WorkloadKind;

const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn claim(name: &str) -> Value {
    json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "metadata": {"namespace": "shop", "name": name, "managedFields": [{"manager": "kubectl"}]},
        "spec": {"accessModes": ["ReadWriteOnce"]}})
}

fn node(name: &str) -> Value {
    json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}})
}

fn follow_all(server: &FakeApiServer) -> LiveView {
    LiveView::with_config(server.config(), |_| true)
}

fn follow_claims(server: &FakeApiServer) -> LiveView {
    LiveView::with_config(server.config(), |kind| kind == ObjectKind::Claim)
}

/// Waits for `condition`, looking again at every sign of life from the cluster.
async fn until(view: &LiveView, what: &str, condition: impl Fn(&LiveView) -> bool) {
    let mut changes = view.shared.statuses.changes();
    let deadline = deadline();
    while !condition(view) {
        if timeout_at(deadline, changes.changed()).await.is_err() {
            panic!("not in time: {what}; {:?}", view.statuses());
        }
    }
}

fn knows(view: &LiveView, name: &str) -> bool {
    view.look(|view| view.claim("shop", name).found().is_some())
}

/// The answer without what it borrows.
fn owned(answer: Lookup<&Claim>) -> Lookup<Claim> {
    match answer {
        Lookup::Found(claim) => Lookup::Found(claim.clone()),
        Lookup::Absent => Lookup::Absent,
        Lookup::NotSynced => Lookup::NotSynced,
    }
}

async fn ask(view: &LiveView, name: &str) -> Lookup<Claim> {
    view.answer(deadline(), |view| owned(view.claim("shop", name)))
        .await
}

fn status(view: &LiveView, kind: ObjectKind) -> KindStatus {
    view.statuses()
        .into_iter()
        .find(|status| status.kind == kind)
        .unwrap()
}

#[tokio::test]
async fn the_view_follows_the_cluster() {
    let server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    server.put(NODES, node("n1"));
    let view = follow_all(&server);
    assert!(matches!(view.fitness(), Fitness::Incomplete(_)));
    view.synced(deadline()).await.unwrap();
    assert_eq!(view.fitness(), Fitness::Current);
    assert!(knows(&view, "data"));
    view.look(|view| {
        assert_eq!(view.claim("shop", "logs"), Lookup::Absent);
        assert_eq!(view.visit_nodes(None, &mut |_| true), Lookup::Found(()));
    });

    server.put(CLAIMS, claim("logs"));
    until(&view, "the new claim", |view| knows(view, "logs")).await;
    server.delete(CLAIMS, claim("data"));
    until(&view, "the deletion", |view| !knows(view, "data")).await;
    assert_eq!(status(&view, ObjectKind::Claim).objects, 1);
    assert_eq!(
        server.selector(REPLICA_SETS).as_deref(),
        Some("%21pod-template-hash")
    );
    assert_eq!(server.selector(CLAIMS), None);

    let cluster = view.into_cluster();
    assert!(cluster.view().claim("shop", "logs").found().is_some());
}

#[tokio::test]
async fn lists_come_in_pages_where_they_cannot_be_streamed() {
    let server = FakeApiServer::new();
    server.refuse_streaming();
    for number in 0..450 {
        server.put(CLAIMS, claim(&format!("data-{number}")));
    }
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    assert_eq!(status(&view, ObjectKind::Claim).objects, 450);
    assert_eq!(server.lists(CLAIMS), 3);
    server.put(CLAIMS, claim("late"));
    until(&view, "an event after the pages", |view| {
        knows(view, "late")
    })
    .await;
}

#[tokio::test]
async fn a_watch_that_is_too_old_begins_with_a_new_list() {
    let server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    server.put(CLAIMS, claim("gone"));
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    server.forget_and_expire(CLAIMS, &claim("gone"));
    until(&view, "the second list", |view| !knows(view, "gone")).await;
    assert!(knows(&view, "data"));
    assert_eq!(server.lists(CLAIMS), 2);
    until(&view, "no harm done", |view| {
        view.fitness() == Fitness::Current
    })
    .await;
}

#[tokio::test]
async fn answers_go_on_while_the_api_server_is_away() {
    let mut server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();

    server.stop();
    let lost = |view: &LiveView| matches!(view.fitness(), Fitness::Stale(_));
    until(&view, "the loss is noticed", lost).await;
    assert!(knows(&view, "data"));
    let Fitness::Stale(sentence) = view.fitness() else {
        panic!("a loss that passes by itself");
    };
    assert!(
        sentence.starts_with("The API server has not answered about persistentvolumeclaims since"),
        "{sentence}"
    );
    let answer = ask(&view, "logs").await;
    assert_eq!(
        answer,
        Lookup::NotSynced,
        "nobody can say that it is absent"
    );

    // No event comes after this: being answered is enough.
    server.start();
    until(&view, "it is back", |view| {
        view.fitness() == Fitness::Current
    })
    .await;
}

#[tokio::test]
async fn an_api_server_that_refuses_is_asked_again() {
    let mut server = FakeApiServer::new();
    server.stop();
    let view = follow_claims(&server);
    let refused = |view: &LiveView| {
        matches!(&status(view, ObjectKind::Claim).link,
            Link::Disconnected { reason, .. } if reason.contains("refused"))
    };
    until(&view, "the refusal", refused).await;
    let Fitness::Incomplete(sentence) = view.fitness() else {
        panic!("nothing is known yet");
    };
    assert!(
        sentence.contains("nothing is known of them yet"),
        "{sentence}"
    );
    server.start();
    view.synced(deadline()).await.unwrap();
}

#[tokio::test]
async fn one_malformed_object_does_not_stop_the_others() {
    let server = FakeApiServer::new();
    let mut odd = claim("odd");
    odd["spec"] = json!("odd");
    server.put(CLAIMS, odd.clone());
    server.put(CLAIMS, claim("turns-odd"));
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    assert_eq!(status(&view, ObjectKind::Claim).malformed, 1);
    assert!(!knows(&view, "odd"));
    assert!(knows(&view, "turns-odd"));

    let answer = ask(&view, "odd").await;
    assert_eq!(answer, Lookup::NotSynced, "it is there, but unknown");
    odd["metadata"]["name"] = json!("turns-odd");
    server.put(CLAIMS, odd);
    until(&view, "what it was is forgotten", |view| {
        !knows(view, "turns-odd")
    })
    .await;
    server.put(CLAIMS, claim("next"));
    until(&view, "the next event", |view| knows(view, "next")).await;
}

#[tokio::test]
async fn what_may_not_be_read_is_said_and_never_taken_for_absent() {
    let server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    server.forbid(NODES);
    server.do_not_serve(REPLICA_SETS);
    let view = follow_all(&server);
    let error = view.synced(deadline()).await.unwrap_err().to_string();
    assert!(
        error.contains("Grant it the verbs get, list and watch on nodes.")
            || error.contains("does not serve replicasets"),
        "{error}"
    );
    let replica_sets = ObjectKind::Workload(WorkloadKind::ReplicaSet);
    until(&view, "all answers", |view| {
        knows(view, "data")
            && matches!(status(view, ObjectKind::Node).link, Link::Forbidden { .. })
            && status(view, replica_sets).link == Link::NotServed
    })
    .await;
    view.look(|view| {
        assert_eq!(view.visit_nodes(None, &mut |_| true), Lookup::NotSynced);
        let replica_set = view.workload(WorkloadKind::ReplicaSet, "shop", "web");
        assert_eq!(replica_set, Lookup::NotSynced);
    });
}

#[tokio::test]
async fn a_claim_the_cache_lacks_is_asked_for() {
    let server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    let judgements = AtomicUsize::new(0);
    let ask = async |name: &str| {
        judgements.store(0, Ordering::Relaxed);
        view.answer(deadline(), |view| {
            judgements.fetch_add(1, Ordering::Relaxed);
            owned(view.claim("shop", name))
        })
        .await
    };

    assert!(ask("data").await.found().is_some());
    assert_eq!(judgements.load(Ordering::Relaxed), 1, "the usual review");
    assert_eq!(*server.gets().borrow(), 0);

    assert_eq!(ask("late").await, Lookup::Absent);
    assert_eq!(judgements.load(Ordering::Relaxed), 2);
    server.put_unheard(CLAIMS, claim("late"));
    let found = ask("late").await.found();
    assert_eq!(
        found.unwrap().metadata.name,
        "late",
        "no answer is remembered"
    );
    assert_eq!(*server.gets().borrow(), 2);

    for odd in ["", "..", "../../nodes", "a/b", "A", "a?x=y"] {
        assert_eq!(ask(odd).await, Lookup::Absent, "{odd:?}");
    }
    assert_eq!(
        *server.gets().borrow(),
        2,
        "what is no name is not asked for"
    );
}

#[tokio::test]
async fn whatever_a_review_names_is_asked_for() {
    let server = FakeApiServer::new();
    let view = follow_all(&server);
    view.synced(deadline()).await.unwrap();
    let object =
        |namespace: Option<&str>| json!({"metadata": {"name": "late", "namespace": namespace}});
    server.put_unheard("/api/v1/persistentvolumes", object(None));
    server.put_unheard("/api/v1/namespaces", object(None));
    server.put_unheard("/apis/apps/v1/deployments", object(Some("shop")));
    let found = view
        .answer(deadline(), |view| {
            (
                view.volume("late").found().is_some(),
                view.namespace("late").found().is_some(),
                view.workload(WorkloadKind::Deployment, "shop", "late")
                    .found()
                    .is_some(),
                view.workload(WorkloadKind::Deployment, "blog", "late") == Lookup::Absent,
                view.claim("", "late") == Lookup::Absent,
            )
        })
        .await;
    assert_eq!(found, (true, true, true, true, true));
    assert_eq!(*server.gets().borrow(), 4);

    let class = view
        .answer(deadline(), |view| {
            view.storage_class("late") == Lookup::Absent
        })
        .await;
    assert!(class);
    assert_eq!(
        *server.gets().borrow(),
        4,
        "many claims live well without their class"
    );
}

#[tokio::test]
async fn a_question_is_asked_once_however_many_ask() {
    let server = FakeApiServer::new();
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    server.put_unheard(CLAIMS, claim("late"));
    server.hold_answers(true);
    let release = async {
        let mut gets = server.gets();
        timeout_at(deadline(), gets.wait_for(|gets| *gets > 0))
            .await
            .unwrap()
            .unwrap();
        server.hold_answers(false);
    };
    let ((), answers) = tokio::join!(
        release,
        futures_util::future::join_all((0..20).map(|_| ask(&view, "late")))
    );
    assert!(answers.into_iter().all(|answer| answer.found().is_some()));
    assert_eq!(*server.gets().borrow(), 1);
}

#[tokio::test]
async fn who_joins_a_question_asks_again_where_its_answer_is_no() {
    let server = FakeApiServer::new();
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    server.hold_answers(true);
    let release = async {
        let mut gets = server.gets();
        timeout_at(deadline(), gets.wait_for(|gets| *gets > 0))
            .await
            .unwrap()
            .unwrap();
        server.hold_answers(false);
    };
    let ((), answers) = tokio::join!(
        release,
        futures_util::future::join_all((0..20).map(|_| ask(&view, "never")))
    );
    assert!(answers.into_iter().all(|answer| answer == Lookup::Absent));
    assert_eq!(*server.gets().borrow(), 2);
}

#[tokio::test]
async fn no_answer_by_the_deadline_is_not_an_absence() {
    let server = FakeApiServer::new();
    let view = follow_claims(&server);
    view.synced(deadline()).await.unwrap();
    server.hold_answers(true);
    let soon = Instant::now() + Duration::from_millis(50);
    let answer = view
        .answer(soon, |view| owned(view.claim("shop", "late")))
        .await;
    assert_eq!(answer, Lookup::NotSynced);
}

#[tokio::test]
async fn without_a_cluster_the_view_says_why() {
    let view = LiveView::start(Access {
        context: Some("no-such-context".to_owned()),
    });
    let error = view
        .synced(Instant::now() + Duration::from_millis(500))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("The context \"no-such-context\" cannot be used"),
        "{error}"
    );
}
