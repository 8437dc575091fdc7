//! Reads AdmissionReviews.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::document;
use super::fields::{Fields, Found, Name, in_any_case};
use engine::model::de::{at_most, name};
use engine::model::object::{Object, ObjectKind, ObjectRef};
use engine::model::workload::WorkloadKind;
use engine::model::{ListRoom, Text};

/// The only version of AdmissionReview that is understood.
pub(super) const API_VERSION: &str = "admission.k8s.io/v1";

/// A body that cannot be answered with a uid.
#[derive(Debug, thiserror::Error)]
pub enum MalformedReview {
    /// The bytes are not the JSON of an AdmissionReview.
    #[error(
        "The body is not an AdmissionReview: {}. Send the JSON of an {API_VERSION} AdmissionReview.",
        cause(.0)
    )]
    NotJson(serde_json::Error),
    /// The review has no request.
    #[error("The AdmissionReview has no request, so there is nothing to answer.")]
    NoRequest,
    /// The request has no uid.
    #[error("The AdmissionReview's request has no uid, so no answer can be matched to it.")]
    NoUid,
    /// The request's uid is longer than any real one.
    #[error(
        "The AdmissionReview's request has a uid of more than {LONGEST_UID} bytes, which no API server makes."
    )]
    LongUid,
}

/// The largest number of bytes in a uid. API servers make UUIDs, which have 36. A longer uid would
/// be sent back, and stay in memory until the client reads it.
const LONGEST_UID: usize = 128;

/// The number of bytes that are kept of an account's name, for the log and the policy.
const LONGEST_USER: usize = 1024;

/// The number of characters that are kept of an error about JSON, which may quote it.
const LONGEST_CAUSE: usize = 160;

/// The size above which a body is large; few of those are read at a time.
const LARGE: usize = 256 * 1024;

/// The number of bytes that the lists of the objects may take in memory: `LEAST_ROOM` plus the
/// length of the body, or `LARGE_ROOM` for a large body. Real objects take less than their text.
const LEAST_ROOM: usize = 64 * 1024;
const LARGE_ROOM: usize = 8 * 1024 * 1024;

/// The error in the JSON, and its place.
fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.chars().count() <= LONGEST_CAUSE {
        return text;
    }
    let begin: String = text.chars().take(LONGEST_CAUSE).collect();
    let (line, column) = (error.line(), error.column());
    format!("{begin}… at line {line} column {column}")
}

engine::words! {
    /// The operation on an object.
    #[derive(Default)]
    Operation {
        /// The object is created.
        Create = "create",
        /// The object is updated.
        Update = "update",
        /// The object is deleted.
        Delete = "delete",
        /// A client connects to the object.
        Connect = "connect",
        /// A word that Kubernetes does not define.
        #[default]
        Unknown = "unknown",
    }
}

impl Operation {
    /// The operations in which objects of any kind are judged.
    pub(crate) const JUDGED: [Self; 2] = [Self::Create, Self::Update];

    /// The operation of this name in the API server.
    fn from_word(word: &str) -> Self {
        match word {
            "CREATE" => Self::Create,
            "UPDATE" => Self::Update,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            _ => Self::Unknown,
        }
    }
}

/// The request of an AdmissionReview.
#[derive(Debug, Default)]
pub(super) struct Request<'a> {
    /// The review's own identity, which the answer repeats.
    pub(super) uid: Text,
    /// The reason why the review cannot be judged, as a sentence; the other fields may then be
    /// empty.
    pub(super) problem: Option<String>,
    /// The kind of the reviewed object, and its subresource.
    pub(super) target: Target,
    /// The operation on the object.
    pub(super) operation: Operation,
    /// The object, with the name and namespace of the request.
    pub(super) object: Option<Box<Object>>,
    /// The object before an update.
    pub(super) old_object: Option<Box<Object>>,
    /// Whether nothing will be stored.
    pub(super) dry_run: bool,
    /// Whether the object had longer lists than are read.
    pub(super) is_cut: bool,
    /// The account that sent the request to the API server.
    pub(super) user: Text,
    pub(super) name: Text,
    pub(super) namespace: Text,
    /// The object and the object before an update, as they are written.
    pub(super) documents: [Option<&'a RawValue>; 2],
}

/// The subject of a request, by its `kind`, `resource` and `subResource`.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// The kind of the object; `None` for kinds that are not read.
    pub(super) kind: Option<ObjectKind>,
    /// The kind that is scaled, for the `scale` subresource.
    pub(super) scaled: Option<WorkloadKind>,
    sub_resource: Text,
    group: Text,
    version: Text,
    kind_name: Text,
}

impl Target {
    fn read(
        kind: Option<&RawValue>,
        resource: Option<&RawValue>,
        sub_resource: Option<&RawValue>,
    ) -> serde_json::Result<Self> {
        let [group, version, kind] =
            Fields(&["group", "version", "kind"], in_any_case).find_in(kind)?;
        let [resource] = Fields(&["resource"], in_any_case).find_in(resource)?;
        let (group, kind_name): (Text, Text) = (value(group)?, value(kind)?);
        let (resource, sub_resource): (Text, Text) = (value(resource)?, value(sub_resource)?);
        Ok(Self {
            kind: ObjectKind::of(&group, &kind_name),
            scaled: (sub_resource == "scale")
                .then(|| WorkloadKind::from_resource(&resource))
                .flatten(),
            sub_resource,
            group,
            version: value(version)?,
            kind_name,
        })
    }

    /// The kind as which the objects are read. Other subresources (status, eviction, …) change
    /// nothing that is judged.
    fn read_as(&self) -> Option<ObjectKind> {
        self.kind.filter(|_| self.sub_resource.is_empty() || self.scaled.is_some())
    }

    /// The kind of workload, if the subject is a workload itself and not one of its subresources.
    pub(super) fn workload(&self) -> Option<WorkloadKind> {
        match self.kind {
            Some(ObjectKind::Workload(kind)) if self.sub_resource.is_empty() => Some(kind),
            _ => None,
        }
    }
}

impl<'a> Request<'a> {
    /// Reads a review: first its fields as they are written, then the objects as their kind.
    ///
    /// # Errors
    /// Fails if not even a uid can be read.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, MalformedReview> {
        let text = str::from_utf8(body)
            .map_err(serde_json::Error::custom)
            .map_err(MalformedReview::NotJson)?;
        let envelope = Envelope::read(text).map_err(MalformedReview::NotJson)?;
        let RequestFields(fields) = envelope.request.ok_or(MalformedReview::NoRequest)?;
        let [uid, ..] = fields;
        let uid: Text = value(uid).map_err(MalformedReview::NotJson)?;
        match uid.len() {
            0 => return Err(MalformedReview::NoUid),
            1..=LONGEST_UID => {}
            _ => return Err(MalformedReview::LongUid),
        }
        let version_and_kind = value::<Text>(envelope.api_version)
            .and_then(|version| Ok((version, value::<Text>(envelope.kind)?)));
        let read = match version_and_kind {
            Ok((api_version, kind)) if api_version == API_VERSION && kind == "AdmissionReview" => {
                Self::of(fields, text.len())
            }
            Ok((api_version, kind)) => Err(other_version(&api_version, &kind)),
            Err(error) => Err(not_checked("request", &error)),
        };
        let request =
            read.unwrap_or_else(|problem| Self { problem: Some(problem), ..Self::default() });
        Ok(Self { uid, ..request })
    }

    /// The request with these fields in a body of this length; an error is a sentence.
    fn of(fields: Found<'a, 11>, body: usize) -> Result<Self, String> {
        let mut request =
            Self::without_objects(fields).map_err(|error| not_checked("request", &error))?;
        request.read_objects(room_for(body)).map_err(|error| not_checked("object", &error))?;
        request.complete();
        Ok(request)
    }

    /// Reads the fields apart from the objects.
    fn without_objects(fields: Found<'a, 11>) -> serde_json::Result<Self> {
        let [
            _,
            kind,
            resource,
            sub_resource,
            name,
            namespace,
            operation,
            user,
            object,
            old_object,
            dry_run,
        ] = fields;
        let [user] = Fields(&["username"], in_any_case).find_in(user)?;
        Ok(Self {
            target: Target::read(kind, resource, sub_resource)?,
            operation: Operation::from_word(&value::<Text>(operation)?),
            dry_run: value(dry_run)?,
            user: value::<User>(user)?.0,
            name: value::<Name253>(name)?.0,
            namespace: value::<Name253>(namespace)?.0,
            documents: [object, old_object],
            ..Self::default()
        })
    }

    /// Reads the objects as their kind; both take their lists from the room.
    fn read_objects(&mut self, mut room: ListRoom) -> serde_json::Result<()> {
        let Some(kind) = self.target.read_as() else {
            return Ok(());
        };
        let [object, old_object] = self.documents;
        self.object = read_object(kind, object, &mut room)?;
        self.is_cut = room.is_short();
        // An old object that is cut does not show which faults existed before the update. The new
        // object is then judged as if it were created.
        self.old_object =
            read_object(kind, old_object, &mut room)?.filter(|_| self.is_cut || !room.is_short());
        Ok(())
    }

    /// The reference to the object under review.
    pub(super) fn reference(&self) -> ObjectRef {
        let target = &self.target;
        let object = self.object.as_deref().or(self.old_object.as_deref());
        ObjectRef {
            api_version: if target.group.is_empty() {
                target.version.clone()
            } else {
                Text::from(format!("{}/{}", target.group, target.version))
            },
            kind: target.kind_name.clone(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: object
                .map(|object| object.metadata().shown_name())
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| self.name.clone()),
        }
    }

    /// Puts the request's own name and namespace into the objects: the API server uses these, and
    /// an object may leave them out.
    fn complete(&mut self) {
        for object in [&mut self.object, &mut self.old_object].into_iter().flatten() {
            let metadata = object.metadata_mut();
            if !self.namespace.is_empty() {
                metadata.namespace = self.namespace.clone();
            }
            if metadata.name.is_empty() {
                metadata.name = self.name.clone();
            }
        }
    }
}

/// The room for the lists of the objects in a body of this length.
fn room_for(body: usize) -> ListRoom {
    ListRoom::new(if body > LARGE { LARGE_ROOM } else { LEAST_ROOM + body })
}

/// Reads an object as its kind. If serde refuses it, for example because a field occurs twice, it
/// is read from a tree, in which the last field counts.
fn read_object(
    kind: ObjectKind,
    json: Option<&RawValue>,
    room: &mut ListRoom,
) -> serde_json::Result<Option<Box<Object>>> {
    let Some(json) = json else {
        return Ok(None);
    };
    let before = room.clone();
    let object = kind.read(json.get(), room).or_else(|error| {
        *room = before;
        document::tree(json).and_then(|tree| kind.read(&tree.to_string(), room)).map_err(|_| error)
    })?;
    Ok(Some(Box::new(object)))
}

/// The fields of a review, as they are written.
#[derive(Default)]
struct Envelope<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    request: Option<RequestFields<'a>>,
}

impl<'a> Envelope<'a> {
    /// Finds the fields of a review and of its request in one pass, so that an error has its place
    /// in the whole text.
    fn read(text: &'a str) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let envelope = json.deserialize_any(EnvelopeVisitor)?;
        json.end().map(|()| envelope)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Envelope::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Envelope::default();
        let names = ["apiVersion", "kind", "request"];
        while let Some(at) = map.next_key_seed(Name(&names, in_any_case))? {
            match at {
                Some(0) => found.api_version = map.next_value()?,
                Some(1) => found.kind = map.next_value()?,
                Some(_) => found.request = map.next_value()?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// The fields of a request, in the order in which API servers write them.
struct RequestFields<'a>(Found<'a, 11>);

impl<'de> Deserialize<'de> for RequestFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = [
            "uid",
            "kind",
            "resource",
            "subResource",
            "name",
            "namespace",
            "operation",
            "userInfo",
            "object",
            "oldObject",
            "dryRun",
        ];
        deserializer.deserialize_map(Fields(&names, in_any_case)).map(Self)
    }
}

/// The sentence about a review with a part that could not be read.
fn not_checked(part: &str, error: &serde_json::Error) -> String {
    let cause = cause(error);
    format!("Not checked, as the {part} does not have the shape of its kind: {cause}.")
}

/// The sentence about a review of another version or kind.
fn other_version(api_version: &str, kind: &str) -> String {
    format!(
        "Not checked, as only an AdmissionReview of {API_VERSION} is understood, not kind \"{kind}\" of \"{api_version}\"."
    )
}

/// The value of a field, or the default.
fn value<'de, T: Deserialize<'de> + Default>(json: Option<&'de RawValue>) -> serde_json::Result<T> {
    json.map_or_else(|| Ok(T::default()), |json| serde_json::from_str(json.get()))
}

#[derive(Default, Deserialize)]
struct Name253(#[serde(deserialize_with = "name")] Text);

#[derive(Default, Deserialize)]
struct User(#[serde(deserialize_with = "at_most::<_, LONGEST_USER>")] Text);

#[cfg(test)]
mod tests;
