//! Every string among the chart's values reaches only its own fields, whatever it contains.

use std::fs;

use serde_json::{Map, Value, json};

use crate::harness::{self, Needs};
use crate::rendered::{documents, helm_called, printed};
use crate::repository;

/// How often the chart is rendered. Each rendering gives another string to each of its values.
const RENDERINGS: usize = 40;

/// Texts that mean something to YAML, Helm or a shell, or look like another type.
const HOSTILE: [&str; 32] = [
    "012",
    "true",
    "null",
    "~",
    "1e3",
    "0x1f",
    "2026-11-29",
    "yes",
    "x\nhostPID: true",
    "x\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}",
    "x\n          securityContext: {privileged: true}",
    "  indented\nless",
    "\n\nx",
    "x\n\n",
    " x ",
    "\tx",
    "x: y",
    "x #y",
    "#x",
    "- x",
    "[x",
    "{x: y",
    "&x",
    "*x",
    "!!binary x",
    "|",
    "\"x",
    "'x",
    "x\\",
    "{{ .Release.Namespace }}",
    "é\u{a0}x\u{200b}y",
    "x\u{7}",
];

/// Collects a value for the schema, in which each free string is the next one of `strings`.
fn filled(schema: &Value, root: &Value, strings: &mut impl FnMut(&Value) -> String) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = root.pointer(name.trim_start_matches('#')).unwrap();
        return filled(definition, root, strings);
    }
    if let Some(all) = schema["allOf"].as_array() {
        return filled(&all[0], root, strings);
    }
    if let Some(allowed) = schema["enum"].as_array() {
        return allowed[0].clone();
    }
    match schema["type"].as_str() {
        Some("string") => strings(schema).into(),
        Some("boolean") => true.into(),
        Some("array") => match filled(&schema["items"], root, strings) {
            Value::Null => json!([]),
            item => json!([item]),
        },
        Some("object") => {
            let mut object = Map::new();
            for (key, field) in schema["properties"].as_object().into_iter().flatten() {
                let value = filled(field, root, strings);
                if !value.is_null() {
                    object.insert(key.clone(), value);
                }
            }
            if schema["additionalProperties"].is_object() {
                let value = filled(&schema["additionalProperties"], root, strings);
                object.insert("example.com/key".to_owned(), value);
            }
            object.into()
        }
        _ => Value::Null,
    }
}

/// The values with which every template shows all that it can, with these strings.
fn values(strings: &mut impl FnMut(&Value) -> String) -> Value {
    let schema = fs::read_to_string(repository("manifests/chart/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut values = filled(&schema, &schema, &mut *strings);
    values["certificates"]["source"] = "files".into();
    values["certificates"]["caBundle"] = "Zm9v".into();
    values["image"]["digest"] = "".into();
    values["hostNetwork"] = false.into();
    values["resources"] = json!({});
    // Its addresses have a pattern that no other text passes.
    values["networkPolicyFrom"] = json!([]);
    values["policy"]["defaults"].as_object_mut().unwrap().remove("match");
    values
}

/// Changes each string, those in the policy file among them.
fn changed(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| changed(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| changed(field, change)),
        _ => {}
    }
}

#[test]
fn a_hostile_value_changes_no_other_field() {
    let programs = harness::or_skip!(harness::require_programs(Needs::ApiServer));
    let folder = tempfile::tempdir().unwrap();
    let rendered = |helm: &str, values: &Value| {
        let file = folder.path().join("values.json");
        fs::write(&file, values.to_string()).unwrap();
        let mut command = helm_called(helm, programs);
        // Helm 3 as it is compiled here takes a Kubernetes of 2020 for granted.
        command.args(["template", "--kube-version=1.37.0", "multi-attach-guard"]);
        command.arg(repository("manifests/chart"));
        let mut objects = documents(&printed(command.arg("--values").arg(&file)));
        for object in &mut objects {
            if let Some(policy) = object.pointer_mut("/data/policy.yaml") {
                *policy = serde_saphyr::from_str(policy.as_str().unwrap()).unwrap();
            }
        }
        objects
    };
    let mut markers = 0;
    // A marker has the prefix that its pattern asks for.
    let prefix = |schema: &Value| if schema["pattern"] == "^--" { "--" } else { "" };
    let marked = values(&mut |schema| {
        markers += 1;
        format!("{}marker-{markers}-", prefix(schema))
    });
    const HELMS: [&str; 2] = ["helm", "helm3"];
    // They sort the objects differently.
    let plain = HELMS.map(|helm| rendered(helm, &marked));
    let (shown, given) = (format!("{:?}", plain[0]), marked.to_string());
    let unused: Vec<String> = (1..=markers)
        .map(|marker| format!("marker-{marker}-"))
        .filter(|marker| given.contains(marker) && !shown.contains(marker))
        .collect();
    assert!(unused.is_empty(), "values {unused:?} reach no object: {marked:#}");
    assert!(RENDERINGS * markers >= 1_000, "{markers} strings");
    for round in 0..RENDERINGS {
        let mut strings = Vec::new();
        let hostile = values(&mut |schema| {
            let number = round * 7 + strings.len() * 3;
            let pair =
                [number, number / HOSTILE.len() + round].map(|at| HOSTILE[at % HOSTILE.len()]);
            let text = if round == 0 { pair[0].to_owned() } else { pair.concat() };
            // A repository has no tag and no digest.
            let text = if schema["not"].is_object() { text.replace([':', '@'], "") } else { text };
            strings.push(format!("{}{text}", prefix(schema)));
            strings[strings.len() - 1].clone()
        });
        let mut expected = plain[round % 2].clone();
        for object in &mut expected {
            changed(object, &|text| {
                strings.iter().enumerate().fold(text.to_owned(), |text, (number, string)| {
                    let marker = format!("marker-{}-", number + 1);
                    text.replace(&format!("--{marker}"), string).replace(&marker, string)
                })
            });
        }
        let found = rendered(HELMS[round % 2], &hostile);
        assert_eq!(found.len(), expected.len(), "round {round}: the number of objects");
        for (object, wanted) in found.iter().zip(&expected) {
            if object != wanted {
                let lines = [object, wanted].map(|value| format!("{value:#}"));
                let mut pairs = lines[0].lines().zip(lines[1].lines());
                panic!("round {round}: {:?}", pairs.find(|(line, other)| line != other));
            }
        }
    }
}
