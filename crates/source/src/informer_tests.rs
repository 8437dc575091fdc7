use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::super::fake_api_server::{CLAIMS, FakeApiServer, NODES};
use super::super::status::Link;
use super::*;
use engine::model::claim::Claim;
use engine::model::labels::Labels;
use engine::model::workload::WorkloadKind;

const SHOP: Asker<'_> = Asker { namespace: "shop", stranger: None };

const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";
const PODS: &str = "/api/v1/pods";

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn claim(name: &str) -> Value {
    json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "metadata": {"namespace": "shop", "name": name, "managedFields": [{"manager": "kubectl"}]},
        "spec": {"accessModes": ["ReadWriteOnce"]}})
}

fn node(name: &str) -> Value {
    let labels = json!({"kubernetes.io/hostname": name});
    json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}})
}

fn all(_: ObjectKind) -> bool {
    true
}

fn only_claims(kind: ObjectKind) -> bool {
    kind == ObjectKind::Claim
}

fn follow(server: &FakeApiServer, kinds: fn(ObjectKind) -> bool) -> Informer {
    Informer::with_config(server.config(), kinds)
}

/// A server with these objects, each in its list, and an informer that has read them.
async fn synced(
    objects: impl IntoIterator<Item = (&'static str, Value)>,
    kinds: fn(ObjectKind) -> bool,
) -> (FakeApiServer, Informer) {
    let server = FakeApiServer::new();
    for (list, object) in objects {
        server.put(list, object);
    }
    let view = follow(&server, kinds);
    view.synced(deadline()).await.unwrap();
    (server, view)
}

/// Waits for `condition`, and checks it again at every sign of life from the cluster.
async fn until(view: &Informer, what: &str, condition: impl Fn(&Informer) -> bool) {
    let mut changes = view.shared.statuses.changes();
    let deadline = deadline();
    while !condition(view) {
        if timeout_at(deadline, changes.changed()).await.is_err() {
            panic!("not in time: {what}; {:?}", view.statuses());
        }
    }
}

fn knows(view: &Informer, name: &str) -> bool {
    view.look(|view| view.claim("shop", name).found().is_some())
}

/// The answer with a copy of the claim that it borrows.
fn owned(answer: Lookup<&Claim>) -> Lookup<Claim> {
    match answer {
        Lookup::Found(claim) => Lookup::Found(claim.clone()),
        Lookup::Absent => Lookup::Absent,
        Lookup::NotSynced => Lookup::NotSynced,
    }
}

impl Informer {
    /// The answer of `judge` with as many look-ups as one review has.
    async fn answer<T>(&self, deadline: Instant, judge: impl FnMut(View<'_>) -> T) -> T {
        self.answer_within(SHOP, &mut { MAX_LOOKUPS }, deadline, judge).await
    }

    /// The confirmed answer of `judge`, which nothing decides first.
    async fn confirm_all<T>(
        &self,
        asker: Asker<'_>,
        left: usize,
        deadline: Instant,
        judge: impl FnMut(View<'_>) -> T,
    ) -> (T, Option<Doubt>) {
        self.confirm(asker, left, || deadline, |_| None, judge).await
    }
}

async fn ask(view: &Informer, name: &str) -> Lookup<Claim> {
    view.answer(deadline(), |view| owned(view.claim("shop", name))).await
}

fn status(view: &Informer, kind: ObjectKind) -> KindStatus {
    view.statuses().into_iter().find(|status| status.kind == kind).unwrap()
}

#[tokio::test]
async fn the_view_follows_the_cluster() {
    let server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    server.put(NODES, node("n1"));
    let view = follow(&server, all);
    assert!(matches!(view.fitness(), Fitness::Incomplete(_)));
    view.synced(deadline()).await.unwrap();
    assert_eq!(view.fitness(), Fitness::Current);
    assert!(knows(&view, "data"));
    view.look(|view| {
        assert_eq!(view.claim("shop", "logs"), Lookup::Absent);
        assert!(view.knows_nodes());
    });

    server.put(CLAIMS, claim("logs"));
    until(&view, "the new claim", |view| knows(view, "logs")).await;
    server.delete(CLAIMS, claim("data"));
    until(&view, "the deletion", |view| !knows(view, "data")).await;
    assert_eq!(status(&view, ObjectKind::Claim).objects, 1);
    assert_eq!(
        server.selector(PODS).as_deref(),
        Some("status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed")
    );
    assert_eq!(server.selector(REPLICA_SETS), None);
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
    let view = follow(&server, only_claims);
    view.synced(deadline()).await.unwrap();
    assert_eq!(status(&view, ObjectKind::Claim).objects, 450);
    assert_eq!(server.lists(CLAIMS), 9);
    server.put(CLAIMS, claim("late"));
    until(&view, "an event after the pages", |view| knows(view, "late")).await;
}

#[tokio::test]
async fn a_streamed_list_that_never_ends_is_read_in_pages() {
    let server = FakeApiServer::new();
    server.forget_bookmarks();
    server.put(CLAIMS, claim("data"));
    let view = follow(&server, only_claims);
    view.synced(deadline()).await.unwrap();
    assert!(knows(&view, "data"));
}

#[tokio::test]
async fn a_watch_that_is_too_old_begins_with_a_new_list() {
    let (server, view) =
        synced([(CLAIMS, claim("data")), (CLAIMS, claim("gone"))], only_claims).await;
    server.forget_and_expire(CLAIMS, &claim("gone"));
    until(&view, "the second list", |view| !knows(view, "gone")).await;
    assert!(knows(&view, "data"));
    assert_eq!(server.lists(CLAIMS), 2);
    until(&view, "no harm done", |view| view.fitness() == Fitness::Current).await;
}

#[tokio::test]
async fn answers_go_on_while_the_api_server_is_away() {
    let (mut server, view) = synced([(CLAIMS, claim("data"))], only_claims).await;

    server.stop();
    until(&view, "the loss is noticed", |view| matches!(view.fitness(), Fitness::Stale(_))).await;
    assert!(knows(&view, "data"));
    let Fitness::Stale(sentence) = view.fitness() else {
        panic!("a loss that passes by itself");
    };
    assert!(
        sentence.starts_with("The API server has not answered about persistentvolumeclaims since"),
        "{sentence}"
    );
    let answer = ask(&view, "logs").await;
    assert_eq!(answer, Lookup::NotSynced, "nobody can say that it is absent");

    // No event follows: a response is enough.
    server.start();
    until(&view, "it is back", |view| view.fitness() == Fitness::Current).await;
}

#[tokio::test]
async fn one_malformed_object_does_not_stop_the_others() {
    let server = FakeApiServer::new();
    let mut odd = claim("odd");
    odd["spec"] = json!("odd");
    server.put(CLAIMS, odd.clone());
    server.put(CLAIMS, claim("turns-odd"));
    let view = follow(&server, only_claims);
    view.synced(deadline()).await.unwrap();
    assert_eq!(status(&view, ObjectKind::Claim).malformed, 1);
    assert!(!knows(&view, "odd"));
    assert!(knows(&view, "turns-odd"));

    let answer = ask(&view, "odd").await;
    assert_eq!(answer, Lookup::NotSynced, "it is there, but unknown");
    odd["metadata"]["name"] = json!("turns-odd");
    server.put(CLAIMS, odd);
    until(&view, "what it was is forgotten", |view| !knows(view, "turns-odd")).await;
    server.put(CLAIMS, claim("next"));
    until(&view, "the next event", |view| knows(view, "next")).await;
}

#[tokio::test]
async fn what_may_not_be_read_is_said_and_never_taken_for_absent() {
    let server = FakeApiServer::new();
    server.put(CLAIMS, claim("data"));
    server.forbid(NODES);
    server.do_not_serve(REPLICA_SETS);
    let view = follow(&server, all);
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
        assert_eq!(view.node("n1"), Lookup::NotSynced);
        let replica_set = view.workload(WorkloadKind::ReplicaSet, "shop", "web");
        assert_eq!(replica_set, Lookup::NotSynced);
    });
    assert!(matches!(view.fitness(), Fitness::Incomplete(_)));
}

#[tokio::test]
async fn a_claim_the_cache_lacks_is_asked_for() {
    let (server, view) = synced([(CLAIMS, claim("data"))], only_claims).await;
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
    assert_eq!(found.unwrap().metadata.name, "late", "no answer is remembered");
    assert_eq!(*server.gets().borrow(), 2);
    let counts = [("found", 1), ("absent", 1), ("unanswered", 0)];
    assert_eq!(view.lookup_counts(), counts);

    for odd in ["", "..", "../../nodes", "a/b", "A", "a?x=y"] {
        assert_eq!(ask(odd).await, Lookup::Absent, "{odd:?}");
    }
    assert_eq!(*server.gets().borrow(), 2, "what is no name is not requested");
}

#[tokio::test]
async fn whatever_a_review_names_is_asked_for() {
    let (server, view) = synced([], all).await;
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
                view.workload(WorkloadKind::Deployment, "shop", "late").found().is_some(),
                view.workload(WorkloadKind::Deployment, "blog", "late") == Lookup::Absent,
                view.claim("", "late") == Lookup::Absent,
            )
        })
        .await;
    assert_eq!(found, (true, true, true, true, true));
    assert_eq!(*server.gets().borrow(), 4);

    let class = view.answer(deadline(), |view| view.storage_class("late") == Lookup::Absent).await;
    assert!(class);
    assert_eq!(*server.gets().borrow(), 4, "many claims live well without their class");
}

#[tokio::test]
async fn no_answer_by_the_deadline_is_not_an_absence() {
    let (server, view) = synced([], only_claims).await;
    server.hold(Some(""));
    let soon = Instant::now() + Duration::from_millis(50);
    let answer = view.answer(soon, |view| owned(view.claim("shop", "late"))).await;
    assert_eq!(answer, Lookup::NotSynced);
}

#[tokio::test]
async fn without_a_cluster_the_view_says_why() {
    let access = Access { context: Some("no-such-context".to_owned()), ..Access::default() };
    let view = Informer::start(access, |_| true, usize::MAX);
    let error =
        view.synced(Instant::now() + Duration::from_millis(500)).await.unwrap_err().to_string();
    assert!(error.contains("The context \"no-such-context\" cannot be used"), "{error}");
}

const VOLUMES: &str = "/api/v1/persistentvolumes";
const NAMESPACES: &str = "/api/v1/namespaces";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/horizontalpodautoscalers";

struct NoDocument;

impl engine::verdict::Document for NoDocument {
    fn object(&self) -> Option<&Value> {
        None
    }
}

fn class(provisioner: &str) -> Value {
    json!({"metadata": {"name": "fast"}, "provisioner": provisioner})
}

fn claim_of_class(mode: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": "data"},
        "spec": {"accessModes": [mode], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A Deployment in `shop` that uses the claim `data`.
fn deployment(name: &str, strategy: &str, affinity: &Value) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"replicas": 1, "strategy": {"type": strategy},
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"affinity": affinity,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}}})
}

fn denies(deployment: &Value, view: View<'_>) -> bool {
    use engine::policy::{Action, Policy};
    use engine::storage::Catalog;
    use engine::verdict::{EffectivePolicy, Mode, Review, evaluate};
    use serde::de::DeserializeSeed;

    let effective = EffectivePolicy::new(Policy::default(), Catalog::embedded().unwrap());
    let kind = ObjectKind::Workload(WorkloadKind::Deployment);
    let object = kind.deserialize(deployment.clone()).unwrap();
    let reference = engine::model::object::ObjectRef {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("shop".into()),
        name: "web".into(),
    };
    let review = Review {
        object: &object,
        old: None,
        reference: &reference,
        scaled: None,
        document: &NoDocument,
        mode: Mode::Judge,
    };
    evaluate(&review, view, &effective).action() == Action::Deny
}

/// The name of a case, the reviewed object, additional objects in the cluster, the list whose watch
/// is behind, and the change that this watch has not sent yet.
type Late = (&'static str, Value, Vec<(&'static str, Value)>, &'static str, fn(&FakeApiServer));

fn late_cases() -> Vec<Late> {
    let rolling = || deployment("web", "RollingUpdate", &Value::Null);
    let recreated = || deployment("web", "Recreate", &Value::Null);
    let other = || deployment("other", "Recreate", &Value::Null);
    let together = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}});
    let mut stranger = other();
    stranger["spec"]["template"]["spec"]["volumes"] = json!([]);
    let autoscaler = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    vec![
        ("a claim made anew", rolling(), vec![], CLAIMS, |server| {
            server.put(CLAIMS, claim_of_class("ReadWriteMany"));
        }),
        ("a claim bound by now", rolling(), vec![], CLAIMS, |server| {
            let mut bound = claim_of_class("ReadWriteOnce");
            bound["spec"]["volumeName"] = json!("pv");
            server.put_unheard(VOLUMES, json!({"metadata": {"name": "pv"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "nfs": {},
                "capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "shop", "name": "data"}}}));
            server.put(CLAIMS, bound);
        }),
        ("a volume that fits", rolling(), vec![], VOLUMES, |server| {
            server.put(
                VOLUMES,
                json!({"metadata": {"name": "pv"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast", "capacity": {"storage": "1Gi"}, "nfs": {}}}),
            );
        }),
        ("a class made anew", rolling(), vec![], CLASSES, |server| {
            server.put(CLASSES, class("efs.csi.aws.com"));
        }),
        ("a driver that does not attach", rolling(), vec![], DRIVERS, |server| {
            server.put(
                DRIVERS,
                json!({"metadata": {"name": "ebs.csi.aws.com"}, "spec": {"attachRequired": false}}),
            );
        }),
        ("the last but one node", rolling(), vec![], NODES, |server| {
            server.delete(NODES, node("n2"));
        }),
        ("a label of the namespace", rolling(), vec![], NAMESPACES, |server| {
            server.put(NAMESPACES, json!({"metadata": {"name": "shop",
                "annotations": {"multi-attach-guard.dev/action": "warn", "multi-attach-guard.dev/reason": "r"}}}));
        }),
        (
            "another workload that is gone",
            recreated(),
            vec![(DEPLOYMENTS, other())],
            DEPLOYMENTS,
            |server| server.delete(DEPLOYMENTS, deployment("other", "Recreate", &Value::Null)),
        ),
        (
            "a stranger among those kept together",
            deployment("web", "RollingUpdate", &together),
            vec![(DEPLOYMENTS, stranger)],
            DEPLOYMENTS,
            |server| server.delete(DEPLOYMENTS, deployment("other", "Recreate", &Value::Null)),
        ),
        (
            "an autoscaler that is gone",
            recreated(),
            vec![(AUTOSCALERS, autoscaler)],
            AUTOSCALERS,
            |server| {
                let gone = json!({"metadata": {"namespace": "shop", "name": "web"}});
                server.delete(AUTOSCALERS, gone);
            },
        ),
    ]
}

async fn small_cluster(more: Vec<(&'static str, Value)>) -> (FakeApiServer, Informer) {
    let own = [
        (NODES, node("n1")),
        (NODES, node("n2")),
        (NAMESPACES, json!({"metadata": {"name": "shop"}})),
        (CLASSES, class("ebs.csi.aws.com")),
        (CLAIMS, claim_of_class("ReadWriteOnce")),
    ];
    synced(own.into_iter().chain(more), all).await
}

#[tokio::test]
async fn no_denial_rests_on_a_watch_that_is_behind() {
    for (name, reviewed, more, behind, change) in late_cases() {
        let (server, view) = small_cluster(more).await;
        let judge = |cluster: View<'_>| denies(&reviewed, cluster);
        let before = view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await;
        assert_eq!(before, (true, None), "{name}: before");

        server.silence(behind);
        change(&server);
        assert!(view.answer(deadline(), judge).await, "{name}: unheard of");
        let confirmed = view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await;
        assert_eq!(confirmed, (false, None), "{name}: confirmed");
    }
}

#[tokio::test]
async fn what_cannot_be_confirmed_is_said() {
    let (mut server, view) = small_cluster(vec![]).await;
    let reviewed = deployment("web", "RollingUpdate", &Value::Null);
    let judge = |cluster: View<'_>| denies(&reviewed, cluster);
    let since = server.version();
    server.silence(NODES);
    // One of two is gone, so it matters whether there are more.
    server.delete(NODES, node("n2"));
    server.put(NODES, node("n3"));
    server.put(NODES, node("n4"));
    let soon = Instant::now() + Duration::from_millis(200);
    let (denied, doubt) = view.confirm_all(SHOP, MAX_CONFIRMATIONS, soon, judge).await;
    assert!(!denied);
    assert!(doubt.is_some());
    let (confirmed, ()) =
        tokio::join!(view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge), async {
            server.speak(NODES, since);
        });
    assert_eq!(confirmed, (true, None), "once the watch has caught up");

    server.stop();
    until(&view, "the loss is noticed", |view| matches!(view.fitness(), Fitness::Stale(_))).await;
    let (denied_alone, doubt_alone) =
        view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await;
    assert!(denied_alone && doubt_alone.is_some());
}

#[tokio::test]
async fn what_answers_lead_to_is_asked_for_in_turn() {
    let in_zone = |name: &str| {
        let mut node = node(name);
        node["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "a"});
        node
    };
    let nodes = ["n3", "n4", "n5", "n6", "n7", "n8"].map(|name| (NODES, in_zone(name)));
    let (server, view) = small_cluster(nodes.to_vec()).await;
    for behind in [CLAIMS, VOLUMES, NODES] {
        server.silence(behind);
    }
    // A claim leads to its volume, the volume to the nodes of its zone, and deleted nodes to other
    // nodes.
    let mut bound = claim_of_class("ReadWriteOnce");
    bound["metadata"]["name"] = json!("late");
    bound["spec"]["volumeName"] = json!("pv");
    server.put(CLAIMS, bound);
    server.put(
        VOLUMES,
        json!({"metadata": {"name": "pv"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "pv"},
        "claimRef": {"namespace": "shop", "name": "late"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}}}}),
    );
    for gone in ["n3", "n4", "n5", "n6"] {
        server.delete(NODES, in_zone(gone));
    }
    let mut reviewed = deployment("web", "RollingUpdate", &Value::Null);
    let volume = &mut reviewed["spec"]["template"]["spec"]["volumes"][0];
    volume["persistentVolumeClaim"]["claimName"] = json!("late");
    let judge = |cluster: View<'_>| denies(&reviewed, cluster);
    assert_eq!(view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await, (true, None));
}

#[tokio::test]
async fn of_many_nodes_those_are_asked_for_that_decide() {
    let tainted = |name: &str| {
        let mut node = node(name);
        node["spec"]["taints"] = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        node
    };
    let others = (0..30).map(|number| (NODES, tainted(&format!("gpu-{number}"))));
    let (server, view) = small_cluster(others.collect()).await;
    let reviewed = deployment("web", "RollingUpdate", &Value::Null);
    let judge = |cluster: View<'_>| denies(&reviewed, cluster);
    let (gets, lists) = (*server.gets().borrow(), server.lists(NODES));
    assert_eq!(view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await, (true, None));
    let lookups = *server.gets().borrow() - gets;
    assert!(lookups <= 6, "two nodes, and {} more objects", lookups - 2);
    assert_eq!(server.lists(NODES), lists, "nobody counts what decides nothing");

    server.silence(NODES);
    server.put(NODES, tainted("n2"));
    assert!(view.answer(deadline(), judge).await, "unheard of");
    assert_eq!(view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await, (false, None));
}

#[tokio::test]
async fn what_is_many_is_read_page_by_page_and_what_is_too_many_is_counted() {
    let named = |number: usize| deployment(&format!("w{number:03}"), "Recreate", &Value::Null);
    for (count, is_read) in [(120, true), (600, false)] {
        let others = (0..count).map(|number| (DEPLOYMENTS, named(number)));
        let (server, view) = small_cluster(others.collect()).await;
        let lists = server.lists(DEPLOYMENTS);
        // Another one replaces the last one: their number stays the same.
        server.silence(DEPLOYMENTS);
        server.delete(DEPLOYMENTS, named(count - 1));
        server.put(DEPLOYMENTS, named(count));
        let knows = |cluster: View<'_>| {
            cluster
                .workloads_with(None, Labels::default())
                .any(|workload| workload.metadata.name == format!("w{count:03}"))
        };
        let confirmed = view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), knows).await;
        assert_eq!(confirmed, (is_read, None), "{count} workloads");
        let pages = if is_read { 3 } else { 1 };
        assert_eq!(server.lists(DEPLOYMENTS) - lists, pages, "{count} workloads");
    }
}

#[tokio::test]
async fn reviews_that_are_confirmed_at_the_same_time_share_the_lists() {
    let (server, view) = small_cluster(vec![]).await;
    let reviewed = deployment("web", "RollingUpdate", &Value::Null);
    let judge = |cluster: View<'_>| denies(&reviewed, cluster);
    let lists = server.lists(VOLUMES);
    let confirmations =
        (0..100).map(|_| view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge));
    for confirmed in futures_util::future::join_all(confirmations).await {
        assert_eq!(confirmed, (true, None));
    }
    let lists = server.lists(VOLUMES) - lists;
    assert!(lists <= 50, "{lists} lists for 100 reviews");
}

#[tokio::test]
async fn only_so_many_judgements_are_confirmed_at_the_same_time() {
    let (server, view) = small_cluster(vec![]).await;
    server.hold(Some(""));
    // The first judgements wait for an object; the next one would only wait for a list, which
    // is answered.
    let claim = |cluster: View<'_>| cluster.claim("shop", "data").found().is_some();
    let list = |cluster: View<'_>| {
        cluster.workloads_with(Some("shop"), Labels::default()).count();
        true
    };
    let soon = Instant::now() + Duration::from_millis(50);
    let first = (0..CONFIRMING_OF_A_NAMESPACE)
        .map(|_| view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), claim));
    let next = async {
        let (_, doubt) = view.confirm_all(SHOP, MAX_CONFIRMATIONS, soon, list).await;
        let elsewhere = Asker { namespace: "bank", ..SHOP };
        let later = Instant::now() + Duration::from_secs(30);
        let other = view.confirm_all(elsewhere, MAX_CONFIRMATIONS, later, list).await;
        server.hold(None);
        (doubt, other)
    };
    let (first, (next, other)) = tokio::join!(futures_util::future::join_all(first), next);
    assert!(first.into_iter().all(|confirmed| confirmed == (true, None)));
    assert_eq!(next, Some(Doubt::NoTurn));
    assert_eq!(other, (true, None), "another namespace has turns of its own");
    assert_eq!(view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), list).await, (true, None));
}

#[tokio::test]
async fn strangers_with_many_addresses_leave_the_api_servers_their_turns() {
    let (server, view) = small_cluster(vec![]).await;
    server.hold(Some("/namespaces/flood/"));
    let many = |cluster: View<'_>| {
        let is_absent =
            |number: &u32| cluster.claim("flood", &format!("c{number}")) == Lookup::Absent;
        (0..100).filter(is_absent).count()
    };
    let flood = (0..160).map(|number: u8| {
        let stranger = Some([10, 0, 0, number % 40].into());
        let asker = Asker { namespace: "flood", stranger };
        view.confirm_all(asker, MAX_CONFIRMATIONS, deadline(), many)
    });
    let reviewed = deployment("web", "RollingUpdate", &Value::Null);
    let judge = |cluster: View<'_>| denies(&reviewed, cluster);
    let mut gets = server.gets();
    let confirmed = async {
        gets.wait_for(|gets| *gets >= parts(MAX_LOOKUPS_AT_ONCE)[1]).await.unwrap();
        let ten = (0..10).map(|_| view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge));
        futures_util::future::join_all(ten).await
    };
    tokio::select! {
        ten = confirmed => assert_eq!(ten, vec![(true, None); 10]),
        _ = futures_util::future::join_all(flood) => panic!("the strangers were answered first"),
    }
}

/// Objects wait for an answer, lists do not.
#[tokio::test]
async fn what_decides_is_confirmed_without_the_rest() {
    let (server, view) = small_cluster(vec![]).await;
    server.hold(Some(""));
    let decide = |cluster: View<'_>| {
        cluster.workloads_with(Some("shop"), Labels::default()).count();
        Some("decided")
    };
    let whole = |cluster: View<'_>| {
        cluster.claim("shop", "data").found();
        "whole"
    };
    let soon = || Instant::now() + Duration::from_millis(200);
    let decided = view.confirm(SHOP, MAX_CONFIRMATIONS, soon, decide, whole).await;
    assert_eq!(decided, ("decided", None));
    let (judged, doubt) = view.confirm_all(SHOP, MAX_CONFIRMATIONS, soon(), whole).await;
    assert!(judged == "whole" && doubt.is_some());
    server.hold(None);
    let confirmed = view.confirm(SHOP, MAX_CONFIRMATIONS, deadline, decide, whole).await;
    assert_eq!(confirmed, ("whole", None));
}

#[tokio::test]
async fn what_is_too_much_to_ask_is_not_confirmed() {
    let (server, view) = synced([], only_claims).await;
    let absent = |cluster: View<'_>| {
        (0..1000)
            .filter(|number| cluster.claim("shop", &format!("c{number}")) == Lookup::Absent)
            .count()
    };
    let (_, doubt) = view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), absent).await;
    assert!(doubt.is_some());
    let lookups = *server.gets().borrow();
    assert!(lookups > MAX_LOOKUPS, "{lookups}");
    let (_, doubt_with_fewer) = view.confirm_all(SHOP, MAX_LOOKUPS, deadline(), absent).await;
    assert!(doubt_with_fewer.is_some());
    assert_eq!(*server.gets().borrow() - lookups, MAX_LOOKUPS);
}

#[tokio::test]
async fn what_may_not_be_seen_at_all_is_no_reason_to_doubt() {
    let server = FakeApiServer::new();
    server.forbid(NAMESPACES);
    server.forbid("/api/v1/namespaces/shop");
    server.put(NODES, node("n1"));
    let view = follow(&server, all);
    until(&view, "all else is known", |view| matches!(view.fitness(), Fitness::Stale(_))).await;
    let look = |cluster: View<'_>| cluster.namespace("shop") == Lookup::NotSynced;
    let looked = view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), look).await;
    assert_eq!(looked, (true, None));
}

#[tokio::test]
async fn what_is_not_followed_is_not_asked_for_and_is_no_reason_to_doubt() {
    let server = FakeApiServer::new();
    let pods = ObjectKind::Workload(WorkloadKind::Pod);
    let view = Informer::with_config(server.config(), move |kind| kind != pods);
    view.synced(deadline()).await.unwrap();
    let look =
        |cluster: View<'_>| cluster.workload(WorkloadKind::Pod, "shop", "web") == Lookup::NotSynced;
    assert!(view.answer(deadline(), look).await);
    assert_eq!(view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), look).await, (true, None));
    assert_eq!(*server.gets().borrow(), 0);
}

#[tokio::test]
async fn a_review_asks_for_few_objects() {
    let (server, view) = synced([], only_claims).await;
    let judge = |cluster: View<'_>| {
        (0..1000)
            .filter(|number| cluster.claim("shop", &format!("c{number}")) == Lookup::Absent)
            .count()
    };
    let mut left = MAX_LOOKUPS;
    let absent = view.answer_within(SHOP, &mut left, deadline(), judge).await;
    assert_eq!((absent, left), (MAX_LOOKUPS, 0));
    // No objects are requested to confirm it either.
    let (_, doubt) = view.confirm_all(SHOP, left, deadline(), judge).await;
    assert_eq!(doubt, Some(Doubt::TooMuch));
    assert_eq!(*server.gets().borrow(), MAX_LOOKUPS);
}

#[tokio::test]
async fn what_is_left_out_is_unknown_in_its_namespace_alone() {
    let labels: HashMap<String, &str> = (0..200).map(|number| (number.to_string(), "")).collect();
    let wide = json!({"metadata": {"namespace": "wide", "name": "wide"},
        "spec": {"template": {"metadata": {"labels": labels}}}});
    let server = FakeApiServer::new();
    server.put(DEPLOYMENTS, wide.clone());
    server.put(DEPLOYMENTS, deployment("web", "Recreate", &Value::Null));
    let origin = ConnectBy::Config(Box::new(server.config()));
    let view = Informer::begin(origin, Statuses::new(all), Snapshot::new().limited(12 << 20));
    view.synced(deadline()).await.unwrap();
    assert_eq!(view.usage().left_out, 1);

    for (namespace, is_confirmed) in [(Some("shop"), true), (Some("wide"), false), (None, true)] {
        let judge =
            |cluster: View<'_>| cluster.workloads_with(namespace, Labels::default()).count();
        let (_, doubt) = view.confirm_all(SHOP, MAX_CONFIRMATIONS, deadline(), judge).await;
        assert_eq!(doubt.is_none(), is_confirmed, "{namespace:?}: {doubt:?}");
    }
    let is_found = |cluster: View<'_>| {
        cluster.workload(WorkloadKind::Deployment, "wide", "wide").found().is_some()
    };
    assert!(!view.look(is_found));
    assert!(view.answer(deadline(), is_found).await, "it is looked up by its name");

    server.delete(DEPLOYMENTS, wide);
    until(&view, "the deletion", |view| view.usage().left_out == 0).await;
}
