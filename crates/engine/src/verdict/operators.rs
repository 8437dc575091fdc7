//! The fields of custom resources that decide the faulty fields of the objects that an operator
//! makes.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::Text;
use crate::model::metadata::Controller;
use crate::model::workload::WorkloadKind;

const EMBEDDED: &str = include_str!("operators.yaml");

/// A kind of object that an operator makes; the header of `operators.yaml` explains the keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operator {
    kind: Text,
    group: Text,
    makes: Text,
    strategy: Option<Text>,
    replicas: Option<Text>,
    volumes: Option<Text>,
    /// For readers of the file.
    #[serde(rename = "source")]
    _source: serde::de::IgnoredAny,
}

impl Operator {
    /// The field of the custom resource that becomes `field` of the object.
    fn field(&self, field: &str) -> Option<&Text> {
        match field {
            _ if field.contains("volumes[") => self.volumes.as_ref(),
            _ if field.contains("trategy") => self.strategy.as_ref(),
            "spec.replicas" | "spec.parallelism" => self.replicas.as_ref(),
            _ => None,
        }
    }
}

/// The entries of `operators.yaml`; empty if the file cannot be read, which a test rules out.
static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(|| read(EMBEDDED).unwrap_or_default());

fn read(text: &str) -> Result<Vec<Operator>, serde_saphyr::Error> {
    #[derive(Deserialize)]
    struct File {
        operators: Vec<Operator>,
    }
    Ok(serde_saphyr::from_str::<File>(text)?.operators)
}

/// Says where to change an object of `kind` that `owner` controls, in a sentence with a leading
/// blank. `field` is the field at fault.
pub(super) fn advice(owner: &Controller, kind: WorkloadKind, field: &str) -> String {
    let (owner_kind, name) = (&owner.kind, &owner.name);
    let operator = OPERATORS.iter().find(|operator| {
        operator.kind == *owner_kind
            && operator.group == owner.group()
            && operator.makes == kind.name()
    });
    match operator.and_then(|operator| operator.field(field)) {
        Some(field) => format!(
            " {owner_kind} {name} owns it, and its operator undoes other changes: set {field} of the {owner_kind}."
        ),
        None => format!(
            " {owner_kind} {name} owns it, and its controller may undo other changes: make the change there."
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_file_can_be_read_and_says_everything_once() {
        let operators = read(EMBEDDED).unwrap();
        assert!(operators.len() >= 20);
        let mut seen = HashSet::new();
        for operator in &operators {
            assert!(
                seen.insert((&operator.kind, &operator.group, &operator.makes)),
                "{} twice",
                operator.kind
            );
            assert!(WorkloadKind::from_name(&operator.makes).is_some(), "{}", operator.makes);
            assert!(operator.group.contains('.'), "{}", operator.group);
            let fields = [&operator.strategy, &operator.replicas, &operator.volumes];
            assert!(fields.iter().any(|field| field.is_some()), "{}", operator.kind);
            for field in fields.into_iter().flatten() {
                assert!(field.starts_with("spec."), "{}: {field}", operator.kind);
            }
        }
        let sources = EMBEDDED.matches("source: \"https://").count();
        assert_eq!(sources, operators.len());
    }

    #[test]
    fn every_operator_is_named_with_its_field() {
        for operator in OPERATORS.iter() {
            let owner = Controller {
                api_version: format!("{}/v1", operator.group).into(),
                kind: operator.kind.clone(),
                name: "one".into(),
                ..Controller::default()
            };
            let kind = WorkloadKind::from_name(&operator.makes).unwrap();
            let fields = [
                ("spec.strategy", &operator.strategy),
                ("spec.updateStrategy", &operator.strategy),
                ("spec.replicas", &operator.replicas),
                ("spec.template.spec.volumes[0]", &operator.volumes),
            ];
            for (field, expected) in fields {
                let said = advice(&owner, kind, field);
                let way = match expected {
                    Some(path) => format!("set {path} of the {}.", operator.kind),
                    None => "make the change there.".to_owned(),
                };
                assert!(said.ends_with(&way), "{said}");
                assert!(said.starts_with(&format!(" {} one owns it", operator.kind)), "{said}");
            }
        }
    }
}
