//! Reading an AdmissionReview.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{self, Read};
use engine::model::Text;
use engine::model::de::{at_most, name};
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;

/// The one version of AdmissionReview that is understood.
pub(super) const API_VERSION: &str = "admission.k8s.io/v1";

/// Bytes to which no answer with a uid is possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedReview {
    /// The bytes are not JSON, or stop being JSON before a uid was seen.
    #[error(
        "The body is not an AdmissionReview: {}. Send the JSON of an {API_VERSION} AdmissionReview.",
        cause(.0)
    )]
    NotJson(serde_json::Error),
    /// There is no request in it.
    #[error("The AdmissionReview has no request, so there is nothing to answer.")]
    NoRequest,
    /// The request has no uid.
    #[error("The AdmissionReview's request has no uid, so no answer can be matched to it.")]
    NoUid,
    /// The request's uid is longer than any.
    #[error(
        "The AdmissionReview's request has a uid of more than {LONGEST_UID} bytes, which no API server makes."
    )]
    LongUid,
}

/// Bytes of a uid. An API server makes UUIDs, which have 36; what is longer would be sent
/// back, and waits in memory for as long as the client does not take it.
const LONGEST_UID: usize = 128;

/// Bytes that are kept of the name of an account, for the log and the policy.
const LONGEST_USER: usize = 1024;

/// Characters of what is said of JSON that cannot be read, which may quote it.
const LONGEST_CAUSE: usize = 160;

/// Larger bodies are not read by serde_json, which knows no bounds.
const LARGEST_READ_AGAIN: usize = 256 * 1024;

/// Bytes that lists may take in memory: so many and those of the body, up to a bound. What
/// people write takes less than its text.
const LEAST_ROOM: usize = 32 * 1024;
const MOST_ROOM: usize = 8 * 1024 * 1024;

/// What is wrong with the JSON, and where.
fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.chars().count() <= LONGEST_CAUSE {
        return text;
    }
    let begin: String = text.chars().take(LONGEST_CAUSE).collect();
    let (line, column) = (error.line(), error.column());
    format!("{begin}… at line {line} column {column}")
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Something connects to it.
    Connect,
    /// A word Kubernetes does not know.
    #[default]
    Unknown,
}

impl Operation {
    /// The operations in which objects of any kind are judged.
    pub const JUDGED: [Self; 2] = [Self::Create, Self::Update];

    /// The name in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
            Self::Unknown => "unknown",
        }
    }
}

/// The request of an AdmissionReview.
#[derive(Debug, Default)]
pub struct Request {
    /// The review's own identity, to be repeated in the answer.
    pub uid: Text,
    /// Why the review cannot be judged, as a sentence; the rest may be empty then.
    pub problem: Option<String>,
    /// The kind of the object; `None` for kinds that are not read.
    pub kind: Option<ObjectKind>,
    /// What is done to the object.
    pub operation: Operation,
    /// The object, with the name and namespace of the request.
    pub object: Option<Box<Object>>,
    /// The object before an update.
    pub old_object: Option<Box<Object>>,
    /// For the `scale` subresource: the kind that is scaled.
    pub scaled: Option<WorkloadKind>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Whether the objects had more in their lists than is read.
    pub is_cut: bool,
    /// Who asks.
    pub user: Text,
    group_version_kind: GroupVersionKind,
    name: Text,
    namespace: Text,
    sub_resource: Text,
    resource: Text,
}

impl Request {
    /// Reads a review. What is not JSON may pass where nobody reads it.
    ///
    /// # Errors
    /// When not even a uid can be read.
    pub fn read(body: &[u8]) -> Result<Self, MalformedReview> {
        let room = MOST_ROOM.min(LEAST_ROOM + body.len());
        let text = str::from_utf8(body).map_err(serde::de::Error::custom);
        let read = text.and_then(|text| json::read::<OfObject<ReviewEnvelope>>(text, room));
        let is_large = body.len() > LARGEST_READ_AGAIN;
        let error = match read {
            Ok(Read {
                value: OfObject(review),
                is_cut,
            }) => return review.into_request(is_cut),
            Err(error) if is_large => error,
            // serde_json says what is wrong, and where; or reads it, as an object before its
            // kind.
            Err(_) => match serde_json::from_slice::<OfObject<ReviewEnvelope>>(body) {
                Ok(OfObject(review)) => return review.into_request(false),
                Err(error) => error,
            },
        };
        // Whatever is wrong may lie behind the uid; the answer must carry it.
        let skimmed = match (is_large, str::from_utf8(body)) {
            (true, Ok(text)) => json::read(text, 0).map(|read| read.value),
            (true, Err(_)) => return Err(MalformedReview::NotJson(error)),
            (false, _) => serde_json::from_slice(body),
        };
        match skimmed {
            Ok(OfObject(Skim { request: None })) => Err(MalformedReview::NoRequest),
            Ok(OfObject(Skim {
                request: Some(OfObject(SkimRequest { uid })),
            })) => Ok(Self {
                uid: checked(uid)?,
                problem: Some(format!(
                    "Not checked, as the object does not have the shape of its kind: {}.",
                    cause(&error)
                )),
                ..Self::default()
            }),
            Err(_) => Err(MalformedReview::NotJson(error)),
        }
    }

    /// Names the object under review.
    #[must_use]
    pub fn reference(&self) -> ObjectRef {
        let gvk = &self.group_version_kind;
        let object = self.object.as_deref().or(self.old_object.as_deref());
        let shown = object.and_then(Object::metadata).map_or_else(
            || self.name.clone(),
            engine::model::metadata::Metadata::shown_name,
        );
        ObjectRef {
            api_version: if gvk.group.is_empty() {
                gvk.version.clone()
            } else {
                Text::from(format!("{}/{}", gvk.group, gvk.version))
            },
            kind: gvk.kind.clone(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: if shown.is_empty() {
                self.name.clone()
            } else {
                shown
            },
        }
    }

    /// Puts the request's own name and namespace into the objects: they are
    /// what the API server goes by, and an object may leave them out.
    fn complete(mut self) -> Self {
        self.scaled = (self.sub_resource == "scale")
            .then(|| WorkloadKind::from_resource(&self.resource))
            .flatten();
        for object in [&mut self.object, &mut self.old_object]
            .into_iter()
            .flatten()
        {
            if let Some(metadata) = object.metadata_mut() {
                if !self.namespace.is_empty() {
                    metadata.namespace = self.namespace.clone();
                }
                if metadata.name.is_empty() {
                    metadata.name = self.name.clone();
                }
            }
        }
        // Other subresources (status, eviction, …) change nothing that is judged.
        if !self.sub_resource.is_empty() && self.scaled.is_none() {
            self.object = None;
            self.old_object = None;
        }
        self
    }
}

/// The uid, if an answer can carry it.
fn checked(uid: Text) -> Result<Text, MalformedReview> {
    match uid.len() {
        0 => Err(MalformedReview::NoUid),
        1..=LONGEST_UID => Ok(uid),
        _ => Err(MalformedReview::LongUid),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupVersionKind {
    group: Text,
    version: Text,
    kind: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReviewEnvelope {
    api_version: Option<Text>,
    kind: Option<Text>,
    request: Option<RequestFields>,
}

impl ReviewEnvelope {
    fn into_request(self, is_cut: bool) -> Result<Request, MalformedReview> {
        let RequestFields(mut request) = self.request.ok_or(MalformedReview::NoRequest)?;
        request.uid = checked(request.uid)?;
        request.is_cut = is_cut;
        let named = |field: &Option<Text>, wanted: &str| field.as_deref() == Some(wanted);
        if named(&self.api_version, API_VERSION) && named(&self.kind, "AdmissionReview") {
            return Ok(request.complete());
        }
        Ok(Request {
            uid: request.uid,
            problem: Some(format!(
                "Not checked, as only an AdmissionReview of {API_VERSION} is understood, not {} of {}.",
                self.kind.as_deref().unwrap_or("what has no kind"),
                self.api_version.as_deref().unwrap_or("no apiVersion"),
            )),
            ..Request::default()
        })
    }
}

/// The names of the fields of a request that are read.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Uid,
    Kind,
    Resource,
    SubResource,
    Name,
    Namespace,
    Operation,
    DryRun,
    UserInfo,
    Object,
    OldObject,
    #[serde(other)]
    Other,
}

/// The fields of a request, read by a visitor and not by a derived reader: only
/// a visitor sees the fields in their order, and so can read the object at once
/// as what its kind says. A derived one would have to hold the object as a tree
/// until the end, several times its size. Should the object come before its
/// kind, it is put aside as bytes until the kind is known.
struct RequestFields(Request);

impl<'de> Deserialize<'de> for RequestFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = RequestFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the request of an AdmissionReview")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut request = Request::default();
                let mut kind_known = false;
                let mut aside: [Option<&'de RawValue>; 2] = [None, None];
                while let Some(field) = map.next_key()? {
                    match field {
                        Field::Uid => request.uid = map.next_value()?,
                        // An object between two kinds would have been read as the first.
                        Field::Kind if kind_known => {
                            return Err(serde::de::Error::duplicate_field("kind"));
                        }
                        Field::Kind => {
                            let gvk: GroupVersionKind = map.next_value()?;
                            request.kind = ObjectKind::of(&gvk.group, &gvk.kind);
                            request.group_version_kind = gvk;
                            kind_known = true;
                        }
                        Field::Resource => {
                            request.resource = map.next_value::<Resource>()?.resource;
                        }
                        Field::SubResource => {
                            request.sub_resource =
                                map.next_value::<Option<Text>>()?.unwrap_or_default();
                        }
                        Field::Name => {
                            request.name = map.next_value::<Name>()?.0;
                        }
                        Field::Namespace => {
                            request.namespace = map.next_value::<Name>()?.0;
                        }
                        Field::Operation => {
                            request.operation = match &*map.next_value::<BorrowedText<'de>>()?.0 {
                                "CREATE" => Operation::Create,
                                "UPDATE" => Operation::Update,
                                "DELETE" => Operation::Delete,
                                "CONNECT" => Operation::Connect,
                                _ => Operation::Unknown,
                            };
                        }
                        Field::DryRun => {
                            request.dry_run = map.next_value::<Option<bool>>()?.unwrap_or_default();
                        }
                        Field::UserInfo => {
                            request.user = map.next_value::<UserInfo>()?.username;
                        }
                        Field::Object if kind_known => {
                            aside[0] = None;
                            request.object = map.next_value_seed(MaybeObject(request.kind))?;
                        }
                        Field::OldObject if kind_known => {
                            aside[1] = None;
                            request.old_object = map.next_value_seed(MaybeObject(request.kind))?;
                        }
                        Field::Object => aside[0] = map.next_value()?,
                        Field::OldObject => aside[1] = map.next_value()?,
                        Field::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                let read = |raw: &'de RawValue| {
                    MaybeObject(request.kind)
                        .deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
                        .map_err(serde::de::Error::custom)
                };
                if let Some(raw) = aside[0] {
                    request.object = read(raw)?;
                }
                if let Some(raw) = aside[1] {
                    request.old_object = read(raw)?;
                }
                Ok(RequestFields(request))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    resource: Text,
}

#[derive(Deserialize)]
struct Name(#[serde(deserialize_with = "name")] Text);

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    #[serde(deserialize_with = "at_most::<_, LONGEST_USER>")]
    username: Text,
}

/// An object of a kind, `null`, or one of a kind that is skipped. Boxed, as it is large and
/// moved with its request again and again.
struct MaybeObject(Option<ObjectKind>);

impl<'de> DeserializeSeed<'de> for MaybeObject {
    type Value = Option<Box<Object>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let Some(kind) = self.0 else {
            IgnoredAny::deserialize(deserializer)?;
            return Ok(None);
        };

        struct Nullable(ObjectKind);

        impl<'de> Visitor<'de> for Nullable {
            type Value = Option<Box<Object>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a {}", self.0.name())
            }

            fn visit_none<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }

            fn visit_some<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                let object = self.0.deserialize(deserializer)?;
                Ok(Some(Box::new(object)))
            }
        }

        deserializer.deserialize_option(Nullable(kind))
    }
}

#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// What is read of a JSON object alone: serde would read a struct from a list of its
/// values too.
struct OfObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OfObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = OfObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(OfObject)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

#[derive(Deserialize)]
struct Skim {
    #[serde(default)]
    request: Option<OfObject<SkimRequest>>,
}

#[derive(Deserialize)]
struct SkimRequest {
    #[serde(default)]
    uid: Text,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    const REVIEWS: [&str; 5] = [
        include_str!("../../../../examples/review.json"),
        include_str!("../../../../benches/data/claim-create.json"),
        include_str!("../../../../benches/data/deployment-create.json"),
        include_str!("../../../../benches/data/deployment-update.json"),
        include_str!("../../../../benches/data/scale-update.json"),
    ];

    /// What was read, with every field.
    fn told<E>(read: Result<OfObject<ReviewEnvelope>, E>) -> Option<String> {
        let OfObject(review) = read.ok()?;
        Some(format!("{:?}", review.into_request(false)))
    }

    #[test]
    fn a_review_is_read_in_one_pass() {
        for review in REVIEWS {
            let read = told(json::read(review, MOST_ROOM).map(|read| read.value));
            assert!(read.is_some(), "{review}");
            assert_eq!(read, told(serde_json::from_str(review)), "{review}");
        }
    }

    proptest! {
        #[test]
        fn both_readers_read_the_same(
            review in prop::sample::select(&REVIEWS[..]),
            changes in prop::collection::vec((any::<Index>(), r#"[ \n{}\[\]",:\\0-9a-fntu.é-]{0,2}"#), 1..4),
        ) {
            let mut review = review.to_owned();
            for (at, change) in changes {
                let at = at.index(review.len());
                if let Some(old) = review.get(at..).and_then(|it| it.chars().next()) {
                    review.replace_range(at..at + old.len_utf8(), &change);
                }
            }
            let other = told(serde_json::from_str(&review));
            match told(json::read(&review, MOST_ROOM).map(|read| read.value)) {
                Some(read) if other.is_some() => prop_assert_eq!(Some(read), other, "{}", review),
                // It is not JSON in what nobody reads.
                Some(_) => {}
                // An object whose kind does not come before it is left to serde_json.
                None => prop_assert!(
                    other.is_none() || !review.contains(r#"","kind":{"group":""#),
                    "{}",
                    review
                ),
            }
        }
    }

    #[test]
    fn what_is_large_is_read_once_and_within_bounds() {
        let review = |object: &str, kind: &str| {
            format!(
                r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":"u",{object}{kind}"end":0}}}}"#
            )
        };
        let kind = r#""kind":{"group":"apps","version":"v1","kind":"Deployment"},"#;
        let spread = |count: usize, last: &str| {
            let list = "{},".repeat(count);
            format!(
                r#""object":{{"spec":{{"template":{{"spec":{{"tolerations":[{list}{last}]}}}}}}}},"#
            )
        };
        let shape = "have the shape of its kind";
        let (few, many) = (spread(100, "{}"), spread(1_000_000, "{}"));
        let cases = [
            (review(&few, kind), false, ""),
            (review(kind, &few), false, ""),
            (review(kind, &many), true, ""),
            (review(kind, &spread(1_000_000, "1")), true, ""),
            (review(&many, kind), false, shape),
        ];
        for (number, (body, is_cut, expected)) in cases.into_iter().enumerate() {
            let request = Request::read(body.as_bytes()).unwrap();
            assert_eq!(request.uid, "u", "{number}");
            assert_eq!(request.is_cut, is_cut, "{number}");
            let problem = request.problem.unwrap_or_default();
            assert!(problem.contains(expected), "{number}: {problem}");
            assert_eq!(
                problem.is_empty(),
                expected.is_empty(),
                "{number}: {problem}"
            );
        }
        let open = format!(r#"{{"request":{{"uid":"u","x":{}"#, "[".repeat(1_000_000));
        assert!(matches!(
            Request::read(open.as_bytes()),
            Err(MalformedReview::NotJson(_))
        ));
    }

    #[test]
    fn a_review_is_of_one_kind() {
        let body = format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":"u",
            "kind":{{"group":"storage.k8s.io","kind":"VolumeAttachment"}},"object":{{}},
            "kind":{{"group":"apps","kind":"Deployment"}}}}}}"#
        );
        let request = Request::read(body.as_bytes()).unwrap();
        let problem = request.problem.unwrap_or_default();
        assert!(problem.contains("duplicate field `kind`"), "{problem}");
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
        let request = format!("{:?}", Request::read(body.as_bytes()).unwrap());
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
        let unreadable = format!(
            r#"{{"request":{{"uid":"{}","object":1}}}}"#,
            "x".repeat(1000)
        );
        assert_eq!(refusal(&unreadable), too_long);
        let quoted = refusal(&format!(r#"{{"request":"{}"}}"#, "ü".repeat(10_000)));
        assert!(quoted.contains("… at line 1 column "), "{quoted}");
        assert!(quoted.chars().count() < 2 * LONGEST_CAUSE, "{quoted}");
    }
}
