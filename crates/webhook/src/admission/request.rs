//! Reading an AdmissionReview.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::bounded::{Bounded, Room};
use super::document;
use super::fields::{Fields, Found, Name, in_any_case};
use engine::model::Text;
use engine::model::de::{at_most, name, nullable};
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;

/// The one version of AdmissionReview that is understood.
pub(super) const API_VERSION: &str = "admission.k8s.io/v1";

/// Bytes to which no answer with a uid is possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedReview {
    /// The bytes are not the JSON of an AdmissionReview.
    #[error(
        "The body{} is not an AdmissionReview: {}. Send the JSON of an {API_VERSION} AdmissionReview.",
        with_uid(.uid),
        cause(.error)
    )]
    NotJson {
        /// What is wrong, and where.
        error: serde_json::Error,
        /// The uid of its request, where there is one before the fault; else empty.
        uid: Text,
    },
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

/// Bodies above this are large, and few are read at a time.
const LARGE: usize = 256 * 1024;

/// Bytes that the lists of the objects may take in memory: so many and those of the body, or
/// as many for a large body. What people write takes less than its text.
const LEAST_ROOM: usize = 64 * 1024;
const LARGE_ROOM: usize = 8 * 1024 * 1024;

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

fn with_uid(uid: &str) -> String {
    match uid.len() {
        1..=LONGEST_UID => format!(" with the uid {uid:?}"),
        _ => String::new(),
    }
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

    /// What an API server calls so.
    fn of(word: &str) -> Self {
        match word {
            "CREATE" => Self::Create,
            "UPDATE" => Self::Update,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            _ => Self::Unknown,
        }
    }

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
pub struct Request<'a> {
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
    /// Whether the object had more in its lists than is read.
    pub is_cut: bool,
    /// Who asks.
    pub user: Text,
    /// The object and the object before an update, as they are written.
    pub(super) documents: [Option<&'a RawValue>; 2],
    group_version_kind: GroupVersionKind,
    name: Text,
    namespace: Text,
    sub_resource: Text,
}

#[derive(Debug, Default)]
struct GroupVersionKind {
    group: Text,
    version: Text,
    kind: Text,
}

impl<'a> Request<'a> {
    /// Reads a review: first what stands around the object, then the object by its kind.
    ///
    /// # Errors
    /// When not even a uid can be read.
    pub fn read(body: &'a [u8]) -> Result<Self, MalformedReview> {
        let envelope = str::from_utf8(body)
            .map_err(serde::de::Error::custom)
            .and_then(Envelope::read);
        let mut request = match envelope {
            Ok(envelope) => envelope.into_request()?,
            Err(error) => return Self::unreadable(body, error),
        };
        if request.problem.is_none()
            && let Err(error) = request.read_objects(body.len())
        {
            return Ok(Self::not_checked(request.uid, "object", &error));
        }
        Ok(request)
    }

    /// The answer to a body that is not text, or not JSON, still names the review where
    /// that can be found.
    fn unreadable(body: &[u8], error: serde_json::Error) -> Result<Self, MalformedReview> {
        let mut uid = None;
        let mut json = serde_json::Deserializer::from_slice(body);
        let skim = Find(&["request", "uid"], &mut uid);
        let is_json = skim
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .is_ok();
        match (is_json, uid) {
            (true, Some(uid)) => Ok(Self::not_checked(checked(uid)?, "request", &error)),
            (_, uid) => Err(MalformedReview::NotJson {
                error,
                uid: uid.unwrap_or_default(),
            }),
        }
    }

    fn not_checked(uid: Text, part: &str, error: &serde_json::Error) -> Self {
        Self {
            uid,
            problem: Some(format!(
                "Not checked, as the {part} does not have the shape of its kind: {}.",
                cause(error)
            )),
            ..Self::default()
        }
    }

    fn read_objects(&mut self, body: usize) -> serde_json::Result<()> {
        // Other subresources (status, eviction, …) change nothing that is judged.
        let Some(kind) = self
            .kind
            .filter(|_| self.sub_resource.is_empty() || self.scaled.is_some())
        else {
            return Ok(());
        };
        let bytes = match body > LARGE {
            true => LARGE_ROOM,
            false => LEAST_ROOM + body,
        };
        let mut room = Room::new(bytes);
        let [object, old_object] = self.documents;
        self.object = object.map(|json| read(kind, json, &mut room)).transpose()?;
        self.is_cut = room.is_short();
        // Of an old object alone that is cut nobody can say what was at fault before, and the
        // new one is judged as if it were created.
        self.old_object = old_object
            .map(|json| read(kind, json, &mut room))
            .transpose()?
            .filter(|_| self.is_cut || !room.is_short());
        self.complete();
        Ok(())
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
    fn complete(&mut self) {
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
    }
}

/// The object in `json`, as its kind. What serde refuses, as where a field is there twice, is
/// read from a tree, in which the last of two counts.
fn read(kind: ObjectKind, json: &RawValue, room: &mut Room) -> serde_json::Result<Box<Object>> {
    let mut text = serde_json::Deserializer::from_str(json.get());
    let of_text = room.clone();
    let object = match kind.deserialize(Bounded(&mut text, &of_text)) {
        Ok(object) => {
            *room = of_text;
            Ok(object)
        }
        Err(error) => match document::tree(json) {
            Ok(tree) => kind.deserialize(Bounded(&tree, room)).map_err(|_| error),
            Err(_) => Err(error),
        },
    };
    object.map(Box::new)
}

/// The uid, if an answer can carry it.
fn checked(uid: Text) -> Result<Text, MalformedReview> {
    match uid.len() {
        0 => Err(MalformedReview::NoUid),
        1..=LONGEST_UID => Ok(uid),
        _ => Err(MalformedReview::LongUid),
    }
}

/// What stands in a review around the request.
#[derive(Default)]
struct Envelope<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    request: Option<Found<'a, 11>>,
}

const ENVELOPE: [&str; 3] = ["apiVersion", "kind", "request"];
const REQUEST: [&str; 11] = [
    "uid",
    "kind",
    "resource",
    "subResource",
    "name",
    "namespace",
    "operation",
    "dryRun",
    "userInfo",
    "object",
    "oldObject",
];

impl<'a> Envelope<'a> {
    fn read(body: &'a str) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(body);
        let envelope = json.deserialize_map(Self::default());
        envelope
            .and_then(|envelope| json.end().map(|()| envelope))
            .or_else(|error| Self::read_apart(body).map_err(|_| error))
    }

    /// The same where a request that does not count has another shape.
    fn read_apart(body: &'a str) -> serde_json::Result<Self> {
        let fields = Fields(&ENVELOPE, in_any_case);
        let [api_version, kind, request] = fields.of(Some(serde_json::from_str(body)?))?;
        let request = request.filter(|json| json.get() != "null");
        let fields = Fields(&REQUEST, in_any_case);
        Ok(Self {
            api_version,
            kind,
            request: request.map(|json| fields.of(Some(json))).transpose()?,
        })
    }

    fn into_request(self) -> Result<Request<'a>, MalformedReview> {
        let [uid, rest @ ..] = self.request.ok_or(MalformedReview::NoRequest)?;
        let uid = value::<Text>(uid).map_err(|error| MalformedReview::NotJson {
            error,
            uid: Text::default(),
        })?;
        let uid = checked(uid)?;
        let read = || {
            let (api_version, kind) = (value::<Text>(self.api_version)?, value::<Text>(self.kind)?);
            Ok(
                match api_version == API_VERSION && kind == "AdmissionReview" {
                    true => Request {
                        uid: uid.clone(),
                        ..of_fields(rest)?
                    },
                    false => other_version(uid.clone(), &api_version, &kind),
                },
            )
        };
        Ok(read().unwrap_or_else(|error| Request::not_checked(uid.clone(), "request", &error)))
    }
}

/// Of the request, the fields are only found here, so that the last of two counts.
impl<'de> Visitor<'de> for Envelope<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(at) = map.next_key_seed(Name(&ENVELOPE, in_any_case))? {
            match at {
                Some(0) => self.api_version = Some(map.next_value()?),
                Some(1) => self.kind = Some(map.next_value()?),
                Some(_) => self.request = map.next_value_seed(Fields(&REQUEST, in_any_case))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(self)
    }
}

fn other_version<'a>(uid: Text, api_version: &str, kind: &str) -> Request<'a> {
    let or = |text: &str, nothing: &str| match text {
        "" => nothing.to_owned(),
        text => text.to_owned(),
    };
    Request {
        uid,
        problem: Some(format!(
            "Not checked, as only an AdmissionReview of {API_VERSION} is understood, not {} of {}.",
            or(kind, "what has no kind"),
            or(api_version, "no apiVersion"),
        )),
        ..Request::default()
    }
}

fn of_fields(fields: Found<'_, 10>) -> serde_json::Result<Request<'_>> {
    let [
        kind,
        resource,
        sub_resource,
        name,
        namespace,
        operation,
        dry_run,
        user,
        object,
        old_object,
    ] = fields;
    let [group, version, kind] = Fields(&["group", "version", "kind"], in_any_case).of(kind)?;
    let group_version_kind = GroupVersionKind {
        group: value(group)?,
        version: value(version)?,
        kind: value(kind)?,
    };
    let [resource] = Fields(&["resource"], in_any_case).of(resource)?;
    let [user] = Fields(&["username"], in_any_case).of(user)?;
    let resource: Text = value(resource)?;
    let sub_resource: Text = value(sub_resource)?;
    Ok(Request {
        kind: ObjectKind::of(&group_version_kind.group, &group_version_kind.kind),
        operation: Operation::of(&value::<Text>(operation)?),
        scaled: (sub_resource == "scale")
            .then(|| WorkloadKind::from_resource(&resource))
            .flatten(),
        dry_run: value(dry_run)?,
        user: value::<User>(user)?.0,
        documents: [object, old_object].map(|json| json.filter(|json| json.get() != "null")),
        group_version_kind,
        name: value::<Name253>(name)?.0,
        namespace: value::<Name253>(namespace)?.0,
        sub_resource,
        ..Request::default()
    })
}

/// What a field says; as in Go, `null` says nothing.
fn value<'de, T: Deserialize<'de> + Default>(json: Option<&'de RawValue>) -> serde_json::Result<T> {
    json.map_or_else(
        || Ok(T::default()),
        |json| nullable(&mut serde_json::Deserializer::from_str(json.get())),
    )
}

#[derive(Default, Deserialize)]
struct Name253(#[serde(deserialize_with = "name")] Text);

#[derive(Default, Deserialize)]
struct User(#[serde(deserialize_with = "at_most::<_, LONGEST_USER>")] Text);

/// Looks for the text at a path, and keeps what it found where the JSON ends too early.
struct Find<'f>(&'f [&'static str], &'f mut Option<Text>);

impl<'de> DeserializeSeed<'de> for Find<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.is_empty() {
            *self.1 = Some(nullable(deserializer)?);
            return Ok(());
        }
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Find<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(path, found) = self;
        let [name, inside @ ..] = path else {
            return Ok(());
        };
        while let Some(at) = map.next_key_seed(Name(&[*name], in_any_case))? {
            match at {
                Some(_) => map.next_value_seed(Find(inside, found))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
