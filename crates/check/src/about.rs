//! What is known of a field, for the author of a manifest who points at it.

use std::path::Path;

use super::excerpts::described;
use super::findings::users;
use super::ids::ObjectId;
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
const OF_CLAIM: [&str; 3] = ["metadata.name", "spec.accessModes", "spec.storageClassName"];

/// The field with the claims that a StatefulSet makes.
const TEMPLATES: &str = "spec.volumeClaimTemplates[";

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
        let (id, field, spot) = here
            .filter_map(|(id, known)| {
                known.outline.field_at(at).map(|(field, spot)| (id, field, spot))
            })
            .min_by_key(|(_, _, spot)| spot.end - spot.start)?;
        let scopes = Scopes::of(self);
        let lines = Pointed { scopes: &scopes, id, catalog: effective.catalog() }.about(&field)?;
        Some((spot, lines))
    }
}

/// The object at which the user points.
struct Pointed<'p> {
    scopes: &'p Scopes<'p>,
    id: ObjectId,
    catalog: &'p Catalog,
}

impl Pointed<'_> {
    fn about(&self, field: &str) -> Option<Vec<String>> {
        let context = Context::of(self.scopes, self.id);
        match &context.known.object {
            Object::Claim(claim) => {
                is_any_of(&OF_CLAIM, field).then(|| self.claim(&context, claim))
            }
            Object::Workload(workload) => self.workload(&context, workload, field),
            Object::StorageClass(class) => {
                let is_known = is_any_of(&["metadata.name", "provisioner", "parameters"], field);
                is_known.then(|| vec![self.class(&context, class), self.users_of(class)])
            }
            Object::Volume(volume) => {
                let driver = volume.csi_driver()?;
                let fields = ["spec.accessModes", "spec.csi.driver", "spec.storageClassName"];
                is_any_of(&fields, field).then(|| {
                    let class =
                        StorageClass { provisioner: driver.into(), ..StorageClass::default() };
                    vec![self.class(&context, &class)]
                })
            }
            _ => None,
        }
    }

    fn workload(
        &self,
        context: &Context<'_>,
        workload: &Workload,
        field: &str,
    ) -> Option<Vec<String>> {
        if let Some((number, rest)) =
            field.strip_prefix(TEMPLATES).and_then(|field| field.split_once("]."))
        {
            let template = workload.claim_templates.get(number.parse::<usize>().ok()?)?;
            return is_any_of(&OF_CLAIM, rest).then(|| {
                let class = self.class_of(context, template);
                vec![format!("A claim for each pod: {}", described(template)), class]
            });
        }
        if field.ends_with(".claimName") {
            let document = context.known.outline.document();
            let pointer = field.replace(['.', '['], "/").replace(']', "");
            let name = document.pointer(&format!("/{pointer}"))?.as_str()?.into();
            return Some(match context.claim(&name) {
                Some((_, claim)) => self.claim(context, claim),
                None => vec![format!("claim \"{name}\": {}", context.undefined(&name))],
            });
        }
        let counted = [workload.kind.pods_field(), "spec.strategy", "spec.updateStrategy"];
        is_any_of(&counted, field).then(|| {
            let overlay = overlay(context);
            let view = View::new(&context.parsed.facts, &overlay);
            let pods = pods_at_once(workload, view);
            let claims = workload.template.claims().filter_map(|name| {
                context
                    .claim(name)
                    .map(|(_, claim)| format!("claim \"{name}\": {}", described(claim)))
            });
            std::iter::once(pods).chain(claims.take(2)).collect()
        })
    }

    /// The access modes and the class of the claim, what the class gives, and who uses the claim.
    fn claim(&self, context: &Context<'_>, claim: &Claim) -> Vec<String> {
        let name = &claim.metadata.name;
        let users: Vec<String> =
            users(context, std::slice::from_ref(name)).iter().map(named).collect();
        let used = match users.as_slice() {
            [] => "No workload in these files uses it.".to_owned(),
            _ => format!("Used by {}.", some(users)),
        };
        vec![format!("claim \"{name}\": {}", described(claim)), self.class_of(context, claim), used]
    }

    /// What the class of the claim gives.
    fn class_of(&self, context: &Context<'_>, claim: &Claim) -> String {
        let overlay = overlay(context);
        let view = View::new(&context.parsed.facts, &overlay);
        let found = match claim.class() {
            Some("") => return "It takes volumes without a class.".to_owned(),
            Some(name) => view.storage_class(name).found().or_else(|| likely_classes(name).first()),
            None => view.default_storage_class().found(),
        };
        match found {
            Some(class) => self.class(context, class),
            None => "Its class is not in these files, so nobody can tell what it gives.".to_owned(),
        }
    }

    /// What the class gives, as `capabilities` says it.
    fn class(&self, context: &Context<'_>, class: &StorageClass) -> String {
        let overlay = overlay(context);
        let view = View::new(&context.parsed.facts, &overlay);
        let summary = ClassSummary::in_view(self.catalog, class, view);
        let (files, block) = (summary.filesystem.granted(), summary.block.granted());
        let heading = summary.heading();
        format!("{heading}: Filesystem {files}; Block {block}; {}", summary.attach)
    }

    /// The claims that name the class.
    fn users_of(&self, class: &StorageClass) -> String {
        let names = |claim: &Claim| claim.class() == Some(class.metadata.name.as_str());
        let claims = self.scopes.parsed.objects().filter_map(|(_, known)| match &known.object {
            Object::Claim(claim) if names(claim) => Some(named(&known.reference)),
            _ => None,
        });
        match claims.collect::<Vec<_>>() {
            claims if claims.is_empty() => "No claim in these files names it.".to_owned(),
            claims => format!("Named by {}.", some(claims)),
        }
    }
}

/// Whether the field is one of `fields`, or inside one.
fn is_any_of(fields: &[&str], field: &str) -> bool {
    fields.iter().any(|known| {
        field
            .strip_prefix(known)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// The kind and the name of an object in the same namespace.
fn named(object: &ObjectRef) -> String {
    format!("{} {}", object.kind, object.name)
}
