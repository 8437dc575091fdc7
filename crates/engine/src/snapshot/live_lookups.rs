//! Look-ups that the API server answers for one judgement.

use std::cell::RefCell;
use std::fmt;

use hashbrown::HashMap;

use super::key::ObjectKey;
use super::lookup::Lookup;
use super::store::Snapshot;
use super::stored::{StoredObject, Typed};
use crate::model::Text;
use crate::model::metadata::is_name;
use crate::model::object::ObjectKind;

/// A request for one object, or for all objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LookupRequest {
    /// The kind of object.
    pub kind: ObjectKind,
    /// Empty for objects without a namespace and for all objects in all namespaces.
    pub namespace: Text,
    /// The object's name; empty for all objects.
    pub name: Text,
}

/// As in "PersistentVolumeClaim shop/data" or "all Node objects".
impl fmt::Display for LookupRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = (self.kind.name(), &self.namespace, &self.name);
        match (namespace.is_empty(), name.is_empty()) {
            (true, true) => write!(f, "all {kind} objects"),
            (false, true) => write!(f, "all {kind} objects in {namespace}"),
            (true, false) => write!(f, "{kind} {name}"),
            (false, false) => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

impl LookupRequest {
    fn of(key: ObjectKey<'_>) -> Self {
        Self { kind: key.kind, namespace: key.namespace.into(), name: key.name.into() }
    }

    fn all(kind: ObjectKind, namespace: &str) -> Self {
        Self::of(ObjectKey::new(kind, namespace, ""))
    }
}

/// The responses to the requests of one judgement, and its requests that are still pending.
/// While any are pending, its result is provisional.
#[derive(Debug, Default)]
pub struct LiveLookups {
    /// Whether cached objects are looked up as well, not only missing ones.
    pub(super) confirms_cached: bool,
    responses: HashMap<LookupRequest, Response>,
    /// The objects in the responses, which take precedence over cached ones.
    pub(super) received: Snapshot,
    pending: RefCell<Vec<LookupRequest>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Response {
    /// Objects that are not among those received are absent.
    Received,
    /// The cache is up to date.
    Confirmed,
    /// There was no response.
    None,
}

/// The most pending requests. Further ones are dropped: no review may send as many.
const MAX_PENDING: usize = 64;

/// The most nodes that are looked up one by one. Two decide in most cases.
const MAX_NODES: usize = 8;

impl LiveLookups {
    /// Looks up everything a judgement depends on, not only what the cache lacks: the cache
    /// may be outdated.
    pub fn confirming_everything() -> Self {
        Self { confirms_cached: true, ..Self::default() }
    }

    /// Takes the pending requests.
    pub fn take_pending(&mut self) -> Vec<LookupRequest> {
        std::mem::take(self.pending.get_mut())
    }

    /// Adds the response about one object.
    pub fn found(&mut self, request: LookupRequest, object: Lookup<StoredObject>) {
        let response = match object {
            Lookup::Found(object) => {
                // It was requested by its name, so it is added regardless of its owner.
                self.received.objects.put(&object);
                Response::Received
            }
            Lookup::Absent => Response::Received,
            Lookup::NotSynced => Response::None,
        };
        self.responses.insert(request, response);
    }

    /// Adds all objects of a kind.
    pub fn listed(&mut self, request: LookupRequest, objects: &[StoredObject]) {
        for object in objects {
            self.received.put(object);
        }
        self.responses.insert(request, Response::Received);
    }

    /// Records that the cache has all objects of a kind.
    pub fn confirmed(&mut self, request: LookupRequest) {
        self.responses.insert(request, Response::Confirmed);
    }

    /// The requests without a response.
    pub fn unanswered(&self) -> impl Iterator<Item = &LookupRequest> {
        self.responses
            .iter()
            .filter(|(_, response)| **response == Response::None)
            .map(|(request, _)| request)
    }

    /// Looks up one object; `cached` is what the cache has. Without a response the request is
    /// pending.
    pub(super) fn look_up<'a, T: Typed>(
        &'a self,
        key: ObjectKey<'_>,
        cached: Lookup<&'a T>,
    ) -> Lookup<&'a T> {
        let is_live = match cached {
            Lookup::Found(_) => self.confirms_cached,
            Lookup::Absent => self.confirms_cached || is_looked_up_if_missing(key.kind),
            // A kind that was never synced has nothing to confirm.
            Lookup::NotSynced => is_looked_up_if_missing(key.kind),
        };
        if !is_live {
            return cached;
        }
        // No object can have an invalid name, and a request could reach something else:
        // `../secrets`.
        if !is_name(key.name) || (key.kind.is_namespaced() && !is_name(key.namespace)) {
            return cached.found().map_or(Lookup::Absent, Lookup::Found);
        }
        match self.response(key) {
            Some(Response::Received) => {
                return self.received.get(key).map_or(Lookup::Absent, Lookup::Found);
            }
            Some(Response::Confirmed) => return cached,
            Some(Response::None) => {}
            None => self.request(LookupRequest::of(key)),
        }
        match cached {
            Lookup::Absent if is_looked_up_if_missing(key.kind) => Lookup::NotSynced,
            cached => cached,
        }
    }

    /// Whether a response replaces a cached object: the object is among the received ones, or
    /// absent.
    pub(super) fn supersedes(&self, key: ObjectKey<'_>) -> bool {
        self.response(key) == Some(Response::Received)
    }

    /// Records that a judgement depends on a cached object.
    pub(super) fn depends_on(&self, key: ObjectKey<'_>) {
        if !self.confirms_cached || self.response(key).is_some() {
            return;
        }
        if self.has_enough_nodes(key.kind) {
            self.depends_on_all(key.kind, "");
        } else {
            self.request(LookupRequest::of(key));
        }
    }

    /// Records that a judgement depends on the absence of other objects of a kind.
    pub(super) fn depends_on_all(&self, kind: ObjectKind, namespace: &str) {
        // Nothing is in a namespace whose name is invalid; see `look_up`.
        if !namespace.is_empty() && !is_name(namespace) {
            return;
        }
        let request = LookupRequest::all(kind, namespace);
        if self.confirms_cached && !self.responses.contains_key(&request) {
            self.request(request);
        }
    }

    /// Whether all objects of that kind were received.
    pub(super) fn has_listed(&self, kind: ObjectKind) -> bool {
        self.responses.get(&LookupRequest::all(kind, "")) == Some(&Response::Received)
    }

    /// Whether so many nodes are looked up that a list of all nodes is better.
    pub(super) fn has_enough_nodes(&self, kind: ObjectKind) -> bool {
        let pending = self.pending.borrow();
        let of_nodes = pending
            .iter()
            .chain(self.responses.keys())
            .filter(|request| request.kind == ObjectKind::Node);
        kind == ObjectKind::Node && of_nodes.count() > MAX_NODES
    }

    fn response(&self, key: ObjectKey<'_>) -> Option<Response> {
        if self.responses.is_empty() {
            return None;
        }
        let listed = |request| {
            let response = self.responses.get(&request).copied();
            response.filter(|response| *response == Response::Received)
        };
        self.responses
            .get(&LookupRequest::of(key))
            .copied()
            .or_else(|| listed(LookupRequest::all(key.kind, key.namespace)))
            .or_else(|| listed(LookupRequest::all(key.kind, "")))
    }

    fn request(&self, request: LookupRequest) {
        let mut pending = self.pending.borrow_mut();
        if pending.len() < MAX_PENDING && !pending.contains(&request) {
            pending.push(request);
        }
    }
}

/// Whether a missing object of that kind is looked up: a review nearly always names objects that
/// exist. Classes and CSI drivers are not looked up, because many claims have neither.
const fn is_looked_up_if_missing(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Claim
            | ObjectKind::Volume
            | ObjectKind::Namespace
            | ObjectKind::Workload(_)
            | ObjectKind::Lease
    )
}
