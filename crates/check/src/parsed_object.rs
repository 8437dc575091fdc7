//! An object of a manifest.

use engine::model::Text;
use engine::model::object::{Object, ObjectRef};
use manifest::field_index::FieldIndex;
use manifest::helm_hook::HelmHook;
use manifest::objects::Note;
use manifest::read::Position;

/// An object of a manifest.
pub(super) struct ParsedObject {
    pub(super) place: Position,
    /// The object as its manifest names it, without a namespace if the manifest sets none.
    pub(super) reference: ObjectRef,
    pub(super) object: Object,
    pub(super) outline: FieldIndex,
    pub(super) hook: Option<HelmHook>,
    /// The Helm template from which it was rendered.
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

    /// Its namespace, if it must be in one and names none.
    pub(super) fn unnamed_namespace(&mut self) -> Option<&mut Text> {
        let is_namespaced = self.object.kind().is_namespaced();
        let namespace = &mut self.object.metadata_mut().namespace;
        (is_namespaced && namespace.is_empty()).then_some(namespace)
    }

    /// Sets the namespace, also in its reference, if it names none.
    pub(super) fn put_into(&mut self, namespace: &str) {
        if let Some(unnamed) = self.unnamed_namespace() {
            *unnamed = namespace.into();
            self.reference.namespace = Some(namespace.into());
        }
    }

    /// Whether it is a hook that never runs at the same time as the rest of its release.
    pub(super) const fn passes(&self) -> bool {
        matches!(self.hook, Some(HelmHook::OutsideRelease | HelmHook::Test))
    }
}
