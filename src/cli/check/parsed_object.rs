//! An object of a manifest.

use engine::model::object::{Object, ObjectRef};
use manifest::field_index::FieldIndex;
use manifest::helm_hook::HelmHook;
use manifest::objects::Note;
use manifest::read::Position;

/// An object of a manifest.
pub(super) struct ParsedObject {
    pub(super) place: Position,
    /// The object as its manifest names it, without a namespace it does not say.
    pub(super) reference: ObjectRef,
    pub(super) object: Object,
    pub(super) outline: FieldIndex,
    pub(super) hook: Option<HelmHook>,
    /// The Helm template it was rendered from.
    pub(super) template: Option<Box<str>>,
    pub(super) notes: Vec<Note>,
}

impl ParsedObject {
    pub(super) const fn is_judged(&self) -> bool {
        matches!(
            self.object,
            Object::Workload(_) | Object::Claim(_) | Object::Autoscaler(_)
        )
    }

    /// Whether it is a hook that never runs beside the rest of its release.
    pub(super) const fn passes(&self) -> bool {
        matches!(self.hook, Some(HelmHook::OutsideRelease | HelmHook::Test))
    }
}
