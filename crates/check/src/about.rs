//! What is known of a field, for the author of a manifest who points at it.

use std::path::Path;

use super::excerpts::described;
use super::findings::users;
use super::judge::overlay;
use super::parse::Parsed;
use super::scope::{Context, Scopes};
use engine::model::claim::Claim;
use engine::model::object::{Object, ObjectRef};
use engine::model::storage_class::StorageClass;
use engine::model::words::some;
use engine::model::workload::Workload;
use engine::rules::pods_at_once;
use engine::snapshot::View;
use engine::storage::{Catalog, ClassSummary, likely_classes};
use engine::verdict::EffectivePolicy;
use manifest::locate::Spot;

/// The fields of a claim about which its description is shown.
const OF_CLAIM: [&str; 3] = ["/metadata/name", "/spec/accessModes", "/spec/storageClassName"];

/// The field with the claims that a StatefulSet makes.
const TEMPLATES: &str = "/spec/volumeClaimTemplates/";

impl Parsed {
    /// What is known of the field at the byte `at` of the file `path`, whose links are followed: its
    /// range in bytes, and at most three lines.
    pub fn about(
        &self,
        path: &Path,
        at: usize,
        effective: &EffectivePolicy,
    ) -> Option<(Spot, Vec<String>)> {
        let here = self.objects().filter(|(_, known)| self.text(known).file() == Some(path));
        let (id, (field, spot)) = here
            .filter_map(|(id, known)| Some((id, known.outline.field_at(at)?)))
            .min_by_key(|(_, (_, spot))| spot.end - spot.start)?;
        let scopes = Scopes::of(self);
        let context = &Context::of(&scopes, id);
        let overlay = overlay(context);
        let view = View::new(&self.facts, &overlay);
        Some((spot, Pointed { context, view, catalog: effective.catalog() }.about(&field)?))
    }
}

/// The object at which the user points.
struct Pointed<'p> {
    context: &'p Context<'p>,
    view: View<'p>,
    catalog: &'p Catalog,
}

impl Pointed<'_> {
    fn about(&self, field: &str) -> Option<Vec<String>> {
        let is_any_of = |fields: &[&str]| is_any_of(fields, field);
        match &self.context.known.object {
            Object::Claim(claim) => is_any_of(&OF_CLAIM).then(|| self.claim(claim)),
            Object::Workload(workload) => self.workload(workload, field),
            Object::StorageClass(class) => {
                is_any_of(&["/metadata/name", "/provisioner", "/parameters"])
                    .then(|| vec![self.class(class), self.users_of(class)])
            }
            Object::Volume(volume) => {
                let provisioner = volume.csi_driver()?.into();
                let class = StorageClass { provisioner, ..StorageClass::default() };
                is_any_of(&["/spec/accessModes", "/spec/csi/driver", "/spec/storageClassName"])
                    .then(|| vec![self.class(&class)])
            }
            _ => None,
        }
    }

    fn workload(&self, workload: &Workload, field: &str) -> Option<Vec<String>> {
        if let Some(inner) = field.strip_prefix(TEMPLATES) {
            let (number, rest) = inner.split_at(inner.find('/')?);
            let template = workload.claim_templates.get(number.parse::<usize>().ok()?)?;
            let described = format!("A claim for each pod: {}", described(template));
            return is_any_of(&OF_CLAIM, rest).then(|| vec![described, self.class_of(template)]);
        }
        if field.ends_with("/claimName") {
            let document = self.context.known.outline.document();
            let name = document.pointer(field)?.as_str()?.into();
            return Some(match self.context.claim(&name) {
                Some((_, claim)) => self.claim(claim),
                None => vec![format!("claim \"{name}\": {}", self.context.undefined(&name))],
            });
        }
        let pods = format!("/{}", workload.kind.pods_field().replace('.', "/"));
        let counted = [&*pods, "/spec/strategy", "/spec/updateStrategy"];
        is_any_of(&counted, field).then(|| {
            let claims = workload.template.claims().filter_map(|name| self.context.claim(name));
            let claims = claims.take(2).map(|(_, claim)| named_claim(claim));
            std::iter::once(pods_at_once(workload, self.view)).chain(claims).collect()
        })
    }

    /// The access modes and the class of the claim, what the class gives, and who uses the claim.
    fn claim(&self, claim: &Claim) -> Vec<String> {
        let users = users(self.context, std::slice::from_ref(&claim.metadata.name));
        let users = these("Used by", "No workload", users.iter().map(named));
        vec![named_claim(claim), self.class_of(claim), users]
    }

    /// What the class of the claim gives.
    fn class_of(&self, claim: &Claim) -> String {
        let found = match claim.class() {
            Some("") => return "It takes volumes without a class.".to_owned(),
            Some(name) => {
                self.view.storage_class(name).found().or_else(|| likely_classes(name).first())
            }
            None => self.view.default_storage_class().found(),
        };
        let unknown = "Its class is not in these files, so nobody can tell what it gives.";
        found.map_or_else(|| unknown.to_owned(), |class| self.class(class))
    }

    /// What the class gives, as `capabilities` says it.
    fn class(&self, class: &StorageClass) -> String {
        let summary = ClassSummary::in_view(self.catalog, class, self.view);
        let (files, block) = (summary.filesystem.granted(), summary.block.granted());
        format!("{}: Filesystem {files}; Block {block}; {}", summary.heading(), summary.attach)
    }

    /// The claims that name the class.
    fn users_of(&self, class: &StorageClass) -> String {
        let claims = self.context.parsed.objects().filter_map(|(_, known)| match &known.object {
            Object::Claim(claim) if claim.class() == Some(&class.metadata.name) => {
                Some(named(&known.reference))
            }
            _ => None,
        });
        these("Named by", "No claim", claims)
    }
}

fn named_claim(claim: &Claim) -> String {
    format!("claim \"{}\": {}", claim.metadata.name, described(claim))
}

/// A sentence with the users.
fn these(verb: &str, nobody: &str, users: impl Iterator<Item = String>) -> String {
    match users.collect::<Vec<_>>() {
        users if users.is_empty() => format!("{nobody} in these files uses it."),
        users => format!("{verb} {}.", some(users)),
    }
}

/// Whether the field is one of `fields`, or inside one.
fn is_any_of(fields: &[&str], field: &str) -> bool {
    let is_around = |known: &&str| format!("{field}/").starts_with(&format!("{known}/"));
    fields.iter().any(is_around)
}

/// The kind and the name of an object in the same namespace.
fn named(object: &ObjectRef) -> String {
    format!("{} {}", object.kind, object.name)
}
