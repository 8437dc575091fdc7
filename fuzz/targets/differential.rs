//! Compares two ways to read a review and to judge it: as the webhook does, and as a tree by plain
//! serde_json. In a tree, the last of two equal keys counts.

use std::borrow::Cow;

use engine::model::Text;
use engine::model::metadata::Metadata;
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;
use engine::verdict::{Document, EffectivePolicy, Mode, Review, Verdict, evaluate};
use jiff::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use webhook::admission::{Decision, Endpoint, Received};

use super::review::{cluster, policies};

/// For any bytes, both ways give the same result.
pub fn run(bytes: &[u8]) {
    let [built_in, repairing] = policies();
    let sum = bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    let (endpoint, policy) = match sum % 2 {
        0 => (Endpoint::Validate, built_in),
        _ => (Endpoint::Mutate, repairing),
    };
    let ours = Received::read(bytes, Timestamp::UNIX_EPOCH)
        .ok()
        .map(|received| {
            let verdict = received.judge(endpoint, cluster().view(), policy);
            (received.answer(endpoint, &verdict), verdict)
        })
        .filter(|(answer, _)| answer.decision != Decision::Unreadable);
    // A tree refuses single surrogates, huge numbers and deep nesting even in fields that nobody
    // reads.
    if serde_json::from_slice::<Value>(bytes).is_err() {
        let is_json = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        assert!(ours.is_none() || is_json, "read, and no JSON");
        return;
    }
    let theirs = Tree::read(bytes);
    let Some((answer, verdict)) = ours else {
        let is_excused = theirs.as_ref().is_none_or(Tree::has_list_for_object);
        assert!(is_excused, "not read");
        return;
    };
    let theirs = theirs.expect("read, and of another shape");
    let verdict = format!("{verdict:?}");
    // A tree has no size limits.
    if !verdict.contains("longer than the guard reads") {
        assert_eq!(verdict, theirs.judge(endpoint, policy));
    }
    let kind = theirs.kind.map_or("other", ObjectKind::name);
    let facts = (answer.kind, answer.operation.name(), answer.dry_run);
    let operation = match theirs.operation.as_str() {
        "CREATE" | "UPDATE" | "DELETE" | "CONNECT" => theirs.operation.to_lowercase(),
        _ => "unknown".to_owned(),
    };
    assert_eq!(facts, (kind, operation.as_str(), theirs.dry_run));
    let body: Value = serde_json::from_slice(&answer.body).expect("the answer is JSON");
    assert_eq!(body["response"]["uid"], *theirs.uid);
}

/// A review whose objects are trees.
struct Tree {
    uid: String,
    group: String,
    kind: Option<ObjectKind>,
    operation: String,
    dry_run: bool,
    user: String,
    reference: ObjectRef,
    scaled: Option<WorkloadKind>,
    documents: [Option<Value>; 2],
    objects: [Option<Object>; 2],
}

/// The fields of the envelope in their order. Their names are case-insensitive.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Pairs<'a> {
    fn of(json: &'a str) -> Option<Self> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        if json == "null" {
            return Some(Pairs(Vec::new()));
        }
        let mut json = serde_json::Deserializer::from_str(json);
        let pairs = json.deserialize_map(Fields).ok()?;
        json.end().ok()?;
        Some(pairs)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let folded = |key: &str| key.to_lowercase().to_uppercase();
        self.0
            .iter()
            .filter(move |(key, _)| folded(key) == folded(name))
            .map(|(_, json)| json.get())
    }

    fn get(&self, name: &str) -> &'a str {
        self.all(name).last().unwrap_or("null")
    }

    fn text(&self, name: &str) -> Option<String> {
        let text: Option<String> = serde_json::from_str(self.get(name)).ok()?;
        Some(text.unwrap_or_default())
    }
}

/// The part of a name that the webhook keeps.
fn name(text: &str) -> Text {
    let mut end = text.len().min(254);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

impl Tree {
    /// The review, or `None` if it does not have the structure of one.
    fn read(bytes: &[u8]) -> Option<Self> {
        let review = Pairs::of(str::from_utf8(bytes).ok()?)?;
        // As in Go, each of two requests must have the right structure, and the last one counts.
        let requests: Option<Vec<Pairs<'_>>> = review.all("request").map(Pairs::of).collect();
        let request = requests?.pop()?;
        let uid = request.text("uid")?;
        if uid.is_empty()
            || uid.len() > 128
            || review.text("apiVersion")? != "admission.k8s.io/v1"
            || review.text("kind")? != "AdmissionReview"
        {
            return None;
        }
        let gvk = Pairs::of(request.get("kind"))?;
        let [group, version, kind_name] = ["group", "version", "kind"].map(|field| gvk.text(field));
        let (group, version, kind_name) = (group?, version?, kind_name?);
        let kind = ObjectKind::of(&group, &kind_name);
        let resource = Pairs::of(request.get("resource"))?.text("resource")?;
        let sub_resource = request.text("subResource")?;
        let (own_name, namespace) = (request.text("name")?, request.text("namespace")?);
        let (own_name, namespace) = (name(&own_name), name(&namespace));
        let user = Pairs::of(request.get("userInfo"))?.text("username")?;
        let dry_run: Option<bool> = serde_json::from_str(request.get("dryRun")).ok()?;
        let is_scale = sub_resource == "scale";
        let scaled = is_scale.then(|| WorkloadKind::from_resource(&resource)).flatten();
        let documents = ["object", "oldObject"].map(|field| {
            let document: Value = serde_json::from_str(request.get(field)).unwrap_or_default();
            Some(document).filter(|document| !document.is_null())
        });
        let mut objects = [None, None];
        if let Some(kind) = kind.filter(|_| sub_resource.is_empty() || scaled.is_some()) {
            for (object, document) in objects.iter_mut().zip(&documents) {
                let Some(document) = document else { continue };
                *object = Some(kind.deserialize(document).ok()?);
                let metadata = object.as_mut().map(Object::metadata_mut);
                let Some(metadata) = metadata else { continue };
                if !namespace.is_empty() {
                    metadata.namespace = namespace.clone();
                }
                if metadata.name.is_empty() {
                    metadata.name = own_name.clone();
                }
            }
        }
        let metadata = objects.iter().flatten().next().map(Object::metadata);
        let shown = metadata.map(Metadata::shown_name).unwrap_or_default();
        Some(Self {
            uid,
            kind,
            operation: request.text("operation")?,
            dry_run: dry_run.unwrap_or_default(),
            user,
            reference: ObjectRef {
                api_version: match group.as_str() {
                    "" => version.into(),
                    group => format!("{group}/{version}").into(),
                },
                kind: kind_name.into(),
                namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
                name: if shown.is_empty() { own_name } else { shown },
            },
            group,
            scaled,
            documents,
            objects,
        })
    }

    /// Whether a list is written in place of an object. serde reads it as an object, but neither
    /// the webhook nor Go does. In this case the webhook cannot read the simplest form of the
    /// review either.
    fn has_list_for_object(&self) -> bool {
        let [object, old_object] = &self.documents;
        let kind = self.kind.map_or("", ObjectKind::name);
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": {"group": self.group, "kind": kind},
            "object": object, "oldObject": old_object}});
        let plain = review.to_string();
        let read = Received::read(plain.as_bytes(), Timestamp::UNIX_EPOCH);
        plain.contains('[')
            && read.is_ok_and(|received| {
                let answer = received.answer(Endpoint::Validate, &Verdict::default());
                answer.decision == Decision::Unreadable
            })
    }

    fn judge(&self, endpoint: Endpoint, policy: &EffectivePolicy) -> String {
        let [object, old] = self.objects.each_ref().map(Option::as_ref);
        let object = match self.operation.as_str() {
            "CREATE" | "UPDATE" => object,
            "DELETE" => {
                old.filter(|old| matches!(old, Object::Node(_) | Object::VolumeAttachment(_)))
            }
            _ => None,
        };
        let Some(object) = object else {
            return format!("{:?}", Verdict::default());
        };
        let review = Review {
            object,
            old,
            reference: &self.reference,
            scaled: self.scaled,
            document: self,
            mode: match endpoint {
                Endpoint::Mutate => Mode::Admit,
                Endpoint::Validate => Mode::Judge,
            },
        };
        format!("{:?}", evaluate(&review, cluster().view(), policy))
    }
}

impl Document for Tree {
    fn object(&self) -> Option<&Value> {
        self.documents[0].as_ref()
    }

    fn changes_template(&self) -> bool {
        let [new, old] = self.documents.each_ref().map(|document| {
            document
                .as_ref()
                .and_then(|document| document.pointer("/spec/template"))
                .filter(|template| !template.is_null())
        });
        new != old
    }

    fn requester(&self) -> Option<Cow<'_, str>> {
        (!self.user.is_empty()).then_some(Cow::Borrowed(&*self.user))
    }

    fn deletes(&self) -> bool {
        self.operation == "DELETE"
    }

    fn moment(&self) -> Option<Timestamp> {
        Some(Timestamp::UNIX_EPOCH)
    }
}
