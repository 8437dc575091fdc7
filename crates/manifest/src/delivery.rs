//! Objects by which GitOps controllers deliver others: releases of charts, the sources of the
//! charts, and the data that holds their values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::locate::{Spot, locate};
use super::read::Position;
use super::split::parts;
use super::tree::Tree;
use super::visit::{Manifest, object_at};
use engine::model::object::ObjectRef;

/// The most bytes of a document whose content is kept. The limit of the API server is lower.
const MAX_DOCUMENT: usize = 4 << 20;

/// The purpose of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A controller creates other objects from it.
    Release,
    /// It names the location of charts or values.
    Source,
    /// It holds data, which is read again when it is needed.
    Data,
}

/// The group without its version, the kind, and its role.
const KINDS: [(&str, &str, Role); 11] = [
    // https://fluxcd.io/flux/components/helm/api/v2/
    ("helm.toolkit.fluxcd.io", "HelmRelease", Role::Release),
    // https://fluxcd.io/flux/components/kustomize/api/v1/
    ("kustomize.toolkit.fluxcd.io", "Kustomization", Role::Release),
    // https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/
    ("argoproj.io", "Application", Role::Release),
    ("argoproj.io", "ApplicationSet", Role::Release),
    // https://docs.k3s.io/add-ons/helm
    ("helm.cattle.io", "HelmChart", Role::Release),
    // https://fluxcd.io/flux/components/source/api/v1/
    ("source.toolkit.fluxcd.io", "GitRepository", Role::Source),
    ("source.toolkit.fluxcd.io", "HelmRepository", Role::Source),
    ("source.toolkit.fluxcd.io", "OCIRepository", Role::Source),
    ("source.toolkit.fluxcd.io", "HelmChart", Role::Source),
    ("v1", "ConfigMap", Role::Data),
    ("v1", "Secret", Role::Data),
];

/// An object that delivers others, or that helps to deliver them.
pub struct Delivery {
    /// Its position in the manifests.
    pub place: Position,
    /// Its purpose.
    pub role: Role,
    /// The object as its manifest names it.
    pub reference: ObjectRef,
    /// The Helm template or the file that it was rendered from.
    pub template: Option<Box<str>>,
    /// Its content; null for data and for documents that are too large for an object.
    pub document: Value,
}

impl Delivery {
    /// Reads the object; `None` if it does not deliver others.
    pub(super) fn of(place: Position, manifest: &Manifest<'_, '_>) -> Option<Self> {
        let group = manifest.api_version.split('/').next().unwrap_or_default();
        let (.., role) =
            KINDS.into_iter().find(|(of, name, _)| *of == group && *name == manifest.kind)?;
        let (tree, id, part) = (manifest.tree, manifest.id, manifest.part);
        let metadata = tree.at(id, "metadata")?;
        let text = |name: &str| tree.string(metadata, name);
        let is_kept = role != Role::Data && part.text.len() <= MAX_DOCUMENT;
        Some(Self {
            place,
            role,
            reference: ObjectRef {
                api_version: manifest.api_version.into(),
                kind: manifest.kind.into(),
                namespace: text("namespace").map(Into::into),
                name: text("name")?.into(),
            },
            template: part.template().map(Into::into),
            document: if is_kept { tree.value(id) } else { Value::Null },
        })
    }
}

/// The content of the object at `place` in a file with this text; `None` if there is no such
/// object.
pub fn document_at(text: &str, place: &Position) -> Option<Value> {
    let part = parts(text).into_iter().nth(place.part)?;
    if part.text.len() > MAX_DOCUMENT {
        return None;
    }
    let tree = Tree::parse(part.text).ok()??;
    Some(tree.value(object_at(&tree, &place.items)?))
}

/// The position of the field `path` of the object at `place`, in bytes of the file's text. See
/// [`locate`] for fields that are missing.
pub fn spot_at(text: &str, place: &Position, path: &str) -> Option<Spot> {
    let part = parts(text).into_iter().nth(place.part)?;
    let tree = Tree::parse(part.text).ok()??;
    let id = object_at(&tree, &place.items)?;
    Some(locate(&tree, id, path).moved_by(part.start))
}

/// The value of a text that is one YAML document, as Kubernetes and Helm read it; null if the text
/// is blank, and `None` if it is not YAML.
pub fn value_of(text: &str) -> Option<Value> {
    let part = parts(text).into_iter().find(|part| !part.is_blank());
    let tree = Tree::parse(part.map_or("", |part| part.text)).ok()?;
    Some(tree.map_or(Value::Null, |tree| tree.value(tree.root())))
}

/// The decoded text of one value in the `data` of a Secret; `None` if it is not text.
pub fn decoded(data: &str) -> Option<String> {
    let letters: String = data.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(letters).ok()?).ok()
}
