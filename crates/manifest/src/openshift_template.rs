//! OpenShift Templates: objects with parameters that `oc process` fills in.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::ScalarStyle;

use super::tree::{Id, Shape, Tag, Tree};

/// The most filled-in text of a Template, as a multiple of its own length. A parameter may hold a
/// long text and be used often.
const MAX_GROWTH: usize = 4;

/// Whether an object of this kind holds others in `objects`. OpenShift 3 used the version `v1`.
pub(super) fn is_template(api_version: &str, kind: &str) -> bool {
    let group = api_version.split('/').next().unwrap_or_default();
    kind == "Template" && matches!(group, "template.openshift.io" | "v1")
}

/// Fills in the parameters if the document is a Template. A parameter that has no value, or gets
/// one only when the Template is processed, stays a placeholder.
pub(super) fn fill_in(tree: &mut Tree<'_>) {
    let root = tree.root();
    let text = |field| tree.string(root, field).unwrap_or_default();
    let is_template_here = is_template(text("apiVersion"), text("kind"));
    let Some(objects) = tree.sequence(root, "objects").filter(|_| is_template_here) else {
        return;
    };
    let values = parameters(tree);
    let mut left = tree.text.len().saturating_mul(MAX_GROWTH);
    let end = tree.node(objects).after;
    for node in &mut tree.nodes[objects as usize..end as usize] {
        if let Shape::Scalar(scalar) = &mut node.shape
            && let Some((value, style)) = filled(&scalar.text, &values, left)
        {
            left = left.saturating_sub(value.len());
            scalar.text = Cow::Owned(value);
            scalar.tag = Tag::None;
            scalar.style = style;
        }
    }
}

/// The parameters that have a value, by name.
fn parameters(tree: &Tree<'_>) -> HashMap<String, String> {
    let Some(list) = tree.sequence(tree.root(), "parameters") else {
        return HashMap::new();
    };
    let text = |id: Id, name| {
        let (_, value) = tree.entry(id, name)?;
        let text = &tree.node(tree.target(value)).shape.scalar()?.text;
        (!text.is_empty()).then(|| text.to_string())
    };
    tree.children(list).filter_map(|id| Some((text(id, "name")?, text(id, "value")?))).collect()
}

/// `text` with its parameters filled in, and its new style: `${{NAME}}` alone stands for a value of
/// any type, `${NAME}` for text. `None` if no parameter is filled in or the text would become longer
/// than `most`.
fn filled(
    text: &str,
    values: &HashMap<String, String>,
    most: usize,
) -> Option<(String, ScalarStyle)> {
    let whole = text.strip_prefix("${{").and_then(|rest| rest.strip_suffix("}}"));
    if let Some(value) = whole.and_then(|name| values.get(name)) {
        return (value.len() <= most).then(|| (value.clone(), ScalarStyle::Plain));
    }
    let mut filled = String::new();
    let mut rest = text;
    let mut is_changed = false;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let found = after
            .split_once('}')
            .and_then(|(name, after)| Some((values.get(name)?.as_str(), after)));
        is_changed |= found.is_some();
        let (value, after) = found.unwrap_or(("${", after));
        filled.push_str(value);
        rest = after;
        if filled.len() > most {
            return None;
        }
    }
    filled.push_str(rest);
    is_changed.then_some((filled, ScalarStyle::DoubleQuoted))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEMPLATE: &str = "\
apiVersion: template.openshift.io/v1
kind: Template
objects:
- name: ${NAME}-web
  replicas: ${{COUNT}}
  size: ${COUNT}
  class: ${CLASS}
  both: '${NAME}${NAME}'
parameters:
- {name: NAME, value: shop}
- {name: COUNT, value: \"2\"}
- {name: CLASS, required: true}
";

    fn objects(text: &str) -> Value {
        let mut tree = Tree::parse(text).unwrap().unwrap();
        fill_in(&mut tree);
        tree.value(tree.root())["objects"].clone()
    }

    #[test]
    fn parameters_with_a_value_are_filled_in() {
        assert_eq!(
            objects(TEMPLATE),
            json!([{
                "name": "shop-web", "replicas": 2, "size": "2", "class": "${CLASS}", "both": "shopshop"
            }])
        );
    }

    #[test]
    fn other_kinds_are_left_alone() {
        let other = TEMPLATE.replace("kind: Template", "kind: Other");
        assert_eq!(objects(&other)[0]["name"], "${NAME}-web");
    }

    #[test]
    fn a_long_value_that_is_used_often_does_not_fill_the_memory() {
        let long = "x".repeat(10_000);
        let uses = "- ${LONG}\n".repeat(1_000);
        let text = format!(
            "apiVersion: v1\nkind: Template\nparameters: [{{name: LONG, value: {long}}}]\nobjects:\n{uses}"
        );
        assert!(objects(&text).to_string().len() < (MAX_GROWTH + 2) * text.len());
    }
}
