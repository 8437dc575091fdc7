use super::*;

const REVIEWS: [&str; 5] = [
    include_str!("../../../../../examples/review.json"),
    include_str!("../../../../../benches/data/claim-create.json"),
    include_str!("../../../../../benches/data/deployment-create.json"),
    include_str!("../../../../../benches/data/deployment-update.json"),
    include_str!("../../../../../benches/data/scale-update.json"),
];

/// A review whose request has these fields besides its uid.
fn review(fields: &str) -> String {
    format!(
        r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":"u",{fields}"end":0}}}}"#
    )
}

const DEPLOYMENT: &str = r#""kind":{"group":"apps","version":"v1","kind":"Deployment"},"#;

fn replicas(review: &str) -> i64 {
    let request = Request::read(review.as_bytes()).unwrap();
    assert_eq!(request.problem, None, "{review}");
    match request.object.as_deref() {
        Some(Object::Workload(workload)) => workload.replicas,
        other => panic!("{review}: {other:?}"),
    }
}

#[test]
fn what_api_servers_send_is_read_in_whatever_order() {
    for review in REVIEWS {
        let read = Request::read(review.as_bytes()).unwrap();
        assert_eq!(read.problem, None, "{review}");
        assert!(read.object.is_some(), "{review}");
        let mut tree: serde_json::Value = serde_json::from_str(review).unwrap();
        let fields: serde_json::Map<_, _> =
            tree["request"].as_object().cloned().unwrap().into_iter().rev().collect();
        tree["request"] = fields.into();
        let body = tree.to_string();
        let turned = Request::read(body.as_bytes()).unwrap();
        assert_eq!(turned.uid, read.uid);
        assert_eq!(turned.object, read.object);
        assert_eq!(turned.old_object, read.old_object);
        assert_eq!(turned.reference(), read.reference());
    }
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let of = |spec: &str| review(&format!(r#"{DEPLOYMENT}"object":{{"spec":{spec}}},"#));
    let cases = [
        (of(r#"{"replicas":2}"#), 2),
        (of(r#"{"replicas":2,"replicas":3}"#), 3),
        (of(r#"{"replicas":"2","replicas":3}"#), 3),
        (of(r#"{"replicas":2,"r\u0065plicas":3}"#), 3),
        (of(r#"{"replicas":2},"spec":{"replicas":3}"#), 3),
        // Kubernetes does not accept a field of an object in another case.
        (of(r#"{"replicas":2,"Replicas":3}"#), 2),
        (
            review(&format!(
                r#"{DEPLOYMENT}"object":{{"spec":{{"replicas":2}}}},"Object":{{"spec":{{"replicas":3}}}},"#
            )),
            3,
        ),
        // The object is read as the last kind, wherever that stands.
        (
            review(&format!(
                r#""kind":{{"kind":"Pod"}},"object":{{"spec":{{"replicas":3}}}},{DEPLOYMENT}"#
            )),
            3,
        ),
        (
            review(
                r#""object":1,"end":0},"Request":{"uid":"u","kind":{"group":"apps","Kind":"Deployment"},"object":{"spec":{"replicas":3}},"#,
            ),
            3,
        ),
    ];
    for (review, expected) in cases {
        assert_eq!(replicas(&review), expected, "{review}");
    }
}

#[test]
fn what_cannot_be_read_is_said_with_the_uid() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let object = |json: &str| review(&format!(r#"{DEPLOYMENT}"object":{json},"#));
    let not_checked = [
        object("1"),
        object("[]"),
        object(r#"{"spec":{"replicas":"two"}}"#),
        object(r#"{"spec":{"replicas":1e999}}"#),
        object(r#"{"metadata":{"name":"\ud800"}}"#),
        object(&format!(r#"{{"spec":{{"template":{deep}}}}}"#)),
        review(r#""name":1,"#),
        review(r#""dryRun":"no","#),
        review(r#""kind":"Deployment","#),
    ];
    for review in not_checked {
        let request = Request::read(review.as_bytes()).unwrap();
        assert_eq!(request.uid, "u", "{review}");
        let problem = request.problem.unwrap_or_default();
        assert!(problem.contains("have the shape of its kind"), "{review}: {problem}");
    }
    // Fields that are not read may have any depth.
    assert_eq!(replicas(&object(&format!(r#"{{"unread":{deep}}}"#))), 1);
    let mut bytes = review(r#""name":"HERE","#).into_bytes();
    let at = bytes.windows(4).position(|window| window == b"HERE").unwrap();
    bytes[at] = 0xFF;
    let refused = Request::read(&bytes).unwrap_err().to_string();
    assert!(refused.contains("utf-8"), "{refused}");
    let whole = review(DEPLOYMENT);
    for end in [1, 20, 40, whole.len() - whole.find("uid").unwrap()] {
        let said = refusal(&whole[..whole.len() - end]);
        assert!(said.starts_with("The body is not an AdmissionReview: "), "{said}");
    }
}

#[test]
fn another_version_or_kind_is_named() {
    for (api_version, kind) in
        [("admission.k8s.io/v1beta1", "AdmissionReview"), ("v1", "Pod"), ("", "")]
    {
        let review = format!(
            r#"{{"apiVersion":"{api_version}","kind":"{kind}","request":{{"uid":"u",{DEPLOYMENT}"object":{{}}}}}}"#
        );
        let request = Request::read(review.as_bytes()).unwrap();
        assert_eq!((request.uid.as_str(), &request.object), ("u", &None), "{review}");
        let problem = request.problem.unwrap_or_default();
        let named = format!("not kind \"{kind}\" of \"{api_version}\".");
        assert!(problem.contains(&named), "{review}: {problem}");
    }
}

#[test]
fn what_is_large_is_read_within_bounds() {
    let spread = |count: usize, last: &str| {
        let list = "{},".repeat(count);
        format!(
            r#""object":{{"spec":{{"template":{{"spec":{{"topologySpreadConstraints":[{list}{last}]}}}}}}}},"#
        )
    };
    let (few, many) = (spread(100, "{}"), spread(1_000_000, "{}"));
    let two = format!(r#"{DEPLOYMENT}{many}"end":0}},"request":{{"uid":"u",{DEPLOYMENT}{few}"#);
    let cases = [
        (DEPLOYMENT.to_owned() + &few, false),
        (two, false),
        (few + DEPLOYMENT, false),
        (DEPLOYMENT.to_owned() + &many, true),
        (DEPLOYMENT.to_owned() + &spread(1_000_000, "1"), true),
        (many + DEPLOYMENT, true),
    ];
    for (number, (fields, is_cut)) in cases.into_iter().enumerate() {
        let body = review(&fields);
        let request = Request::read(body.as_bytes()).unwrap();
        assert_eq!(request.uid, "u", "{number}");
        assert_eq!(request.is_cut, is_cut, "{number}");
        assert_eq!(request.problem, None, "{number}");
    }
    let open = format!(r#"{{"request":{{"uid":"u","x":{}"#, "[".repeat(1_000_000));
    assert!(matches!(Request::read(open.as_bytes()), Err(MalformedReview::NotJson(_))));
}

#[test]
fn names_are_kept_as_far_as_names_go() {
    let long = "x".repeat(100_000);
    let body = format!(
        r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":"u",
        "kind":{{"group":"apps","version":"v1","kind":"Deployment"}},"name":"{long}",
        "namespace":"{long}","userInfo":{{"username":"{long}"}},"object":{{"metadata":{{
        "name":"{long}"}},"spec":{{"template":{{"spec":{{"volumes":[{{"name":"v",
        "persistentVolumeClaim":{{"claimName":"{long}"}}}}]}}}}}}}}}}}}"#
    );
    let mut request = Request::read(body.as_bytes()).unwrap();
    request.documents = [None; 2];
    let request = format!("{request:?}");
    assert!(request.len() < 10_000, "{}", request.len());
}

fn refusal(review: &str) -> String {
    let Err(refusal) = Request::read(review.as_bytes()) else {
        return "read".to_owned();
    };
    refusal.to_string()
}

#[test]
fn what_is_sent_back_has_bounds() {
    let with_uid = |length: usize| {
        let uid = "x".repeat(length);
        refusal(&format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":"{uid}"}}}}"#
        ))
    };
    assert_eq!(with_uid(LONGEST_UID), "read");
    let too_long = MalformedReview::LongUid.to_string();
    assert_eq!(with_uid(LONGEST_UID + 1), too_long);
    let quoted = refusal(&format!(r#"{{"request":"{}"}}"#, "ü".repeat(10_000)));
    assert!(quoted.contains("… at line 1 column "), "{quoted}");
    assert!(quoted.chars().count() < 2 * LONGEST_CAUSE, "{quoted}");
}
