//! The status of each kind that an informer watches.

use std::fmt;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use engine::model::object::ObjectKind;

use super::lock;
use super::resource::{WATCHED, list_path};

/// The status of one kind of object.
#[derive(Clone, Debug)]
pub struct KindStatus {
    /// The kind.
    pub kind: ObjectKind,
    /// Whether a list of all objects was complete once; it stays true from then on.
    pub synced: bool,
    /// The number of objects of the kind in the snapshot.
    pub objects: usize,
    /// The number of events since the start that contained a malformed object.
    pub malformed: u64,
    /// The time at which the API server last sent an object of the kind.
    pub last_event: Option<Timestamp>,
    /// Whether the API server responds.
    pub link: Link,
}

/// Whether the API server responds about a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// It has not responded yet.
    Connecting,
    /// It responds.
    Connected,
    /// It does not respond; the snapshot of the kind is outdated.
    Disconnected {
        /// The time of the first error.
        since: Timestamp,
        /// The last error.
        reason: String,
    },
    /// It forbids listing or watching these objects.
    Forbidden {
        /// The API server's message.
        reason: String,
    },
    /// It does not serve the resource.
    NotServed,
}

/// The time from the beginning of an outage in which the API server is back and has loaded the
/// roles. Until then it refuses everything.
const LOADING_ROLES: SignedDuration = SignedDuration::from_mins(5);

impl Link {
    /// The link after the API server has refused to list or watch. After an outage it may not have
    /// loaded the roles yet.
    pub(super) fn after_refusal(&self, reason: String, now: Timestamp) -> Self {
        match self {
            Self::Disconnected { since, .. } if now.duration_since(*since) < LOADING_ROLES => {
                Self::Disconnected { since: *since, reason }
            }
            _ => Self::Forbidden { reason },
        }
    }
}

impl KindStatus {
    /// Whether the API server refuses to list the kind.
    pub(super) const fn is_refused(&self) -> bool {
        matches!(self.link, Link::Forbidden { .. } | Link::NotServed)
    }

    /// Whether the kind is not built in and the API server has never listed it: its controller is
    /// not installed, or this program may not see its objects.
    pub(super) const fn is_not_installed(&self) -> bool {
        !self.kind.is_built_in() && !self.synced && self.is_refused()
    }

    /// Whether the snapshot of the kind is complete and kept up to date.
    pub(crate) const fn is_current(&self) -> bool {
        self.synced && matches!(self.link, Link::Connected)
    }
}

/// A sentence with the status and, if something is wrong, the way out.
impl fmt::Display for KindStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.kind.plural();
        let stale = if self.synced {
            "verdicts use what was known before"
        } else {
            "nothing is known about them yet"
        };
        match &self.link {
            Link::Connecting => write!(f, "The API server has not responded about {resource} yet."),
            Link::Connected if !self.synced => {
                write!(f, "The first list of {resource} is not complete yet.")
            }
            Link::Connected => {
                write!(f, "All {resource} are known and watched: {}.", self.objects)
            }
            Link::Disconnected { since, reason } => write!(
                f,
                "The API server has not answered about {resource} since {since:.0} ({reason}); {stale}. Retrying."
            ),
            Link::Forbidden { reason } => write!(
                f,
                "The API server forbids this program to watch {resource} ({reason}); {stale}. Grant it the verbs get, list and watch on {resource}."
            ),
            Link::NotServed => write!(
                f,
                "The API server does not serve {resource}; {stale}. It needs Kubernetes 1.30 or newer."
            ),
        }
    }
}

/// The statuses of the kinds that are watched.
pub(super) struct Statuses {
    kinds: Vec<(ObjectKind, Mutex<KindStatus>)>,
    changed: watch::Sender<()>,
}

impl Statuses {
    pub(super) fn new(kinds: impl Fn(ObjectKind) -> bool) -> Self {
        let watched = WATCHED.into_iter().filter(|kind| kinds(*kind));
        let unknown = |kind| KindStatus {
            kind,
            synced: false,
            objects: 0,
            malformed: 0,
            last_event: None,
            link: Link::Connecting,
        };
        Self {
            kinds: watched.map(|kind| (kind, Mutex::new(unknown(kind)))).collect(),
            changed: watch::Sender::new(()),
        }
    }

    pub(super) fn watched(&self) -> impl Iterator<Item = ObjectKind> {
        self.kinds.iter().map(|(kind, _)| *kind)
    }

    /// Whether objects of this kind may be looked up: it is watched, or a Lease, which changes
    /// too often to be watched. The ServiceAccount may have no right to other kinds.
    pub(super) fn may_look_up(&self, kind: ObjectKind) -> bool {
        kind == ObjectKind::Lease || self.watched().any(|watched| watched == kind)
    }

    /// Notifies of every event, list and change of a link.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(super) fn report(&self, count: impl Fn(ObjectKind) -> usize) -> Vec<KindStatus> {
        self.kinds
            .iter()
            .map(|(kind, status)| KindStatus { objects: count(*kind), ..lock(status).clone() })
            .collect()
    }

    /// Records that the API server responded to a list or a watch of the resource at `path`.
    pub(super) fn answered(&self, path: &str) {
        if let Some(kind) = self.watched().find(|kind| list_path(*kind) == path) {
            self.link(kind, |_| Link::Connected);
        }
    }

    /// Records that an object arrived.
    pub(super) fn event(&self, kind: ObjectKind, readable: bool) {
        self.change(kind, |state| {
            state.last_event = Some(Timestamp::now());
            state.malformed += u64::from(!readable);
            true
        });
    }

    /// Records that the list of all objects is complete.
    pub(super) fn synced(&self, kind: ObjectKind) {
        self.change(kind, |state| !std::mem::replace(&mut state.synced, true));
    }

    /// Records that the API server did not respond; an outage begins with its first error.
    pub(super) fn disconnected(&self, kind: ObjectKind, reason: String) {
        self.link(kind, |link| {
            let since = match link {
                Link::Disconnected { since, .. } => *since,
                _ => Timestamp::now(),
            };
            Link::Disconnected { since, reason }
        });
    }

    /// Records whether the API server responds.
    pub(super) fn link(&self, kind: ObjectKind, next: impl FnOnce(&Link) -> Link) {
        self.change(kind, |state| {
            let next = next(&state.link);
            let is_new = next != state.link;
            state.link = next;
            is_new
        });
    }

    fn change(&self, kind: ObjectKind, change: impl FnOnce(&mut KindStatus) -> bool) {
        let Some((_, state)) = self.kinds.iter().find(|(watched, _)| *watched == kind) else {
            return;
        };
        if change(&mut lock(state)) {
            self.changed.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_asked_for_only_where_the_roles_are_loaded() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let lost = |second| Link::Disconnected { since: at(second), reason: "why".to_owned() };
        let forbidden = || Link::Forbidden { reason: "why".to_owned() };
        for (before, expected) in [
            (Link::Connecting, forbidden()),
            (Link::Connected, forbidden()),
            (lost(-199), lost(-199)),
            (lost(-200), forbidden()),
            (forbidden(), forbidden()),
        ] {
            let after = before.after_refusal("why".to_owned(), at(100));
            assert_eq!(after, expected, "{before:?}");
        }
    }
}
