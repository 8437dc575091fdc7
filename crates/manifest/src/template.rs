//! Text that is still to be filled in: templates, placeholders, encrypted values.

use super::tree::{Id, Tree};
use super::versions::kind_of;
use super::visit::Manifest;
use engine::model::object::ObjectKind;

/// Marks of template languages that make a text something other than YAML: `{{` of Helm and Jinja,
/// `{%` of Jinja, `<%` of ERB, and `${` of variables.
const MARKS: [&str; 4] = ["{{", "{%", "<%", "${"];

/// Marks around a placeholder.
const PAIRS: [(&str, &str); 5] = [("<", ">"), ("@", "@"), ("%", "%"), ("__", "__"), ("[[", "]]")];

/// Whether the text is a template, which is not YAML before it is rendered.
pub(super) fn is_template(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark)) || starts_with_a_mark(text)
}

/// Whether a value starts with `@` or `%`, which YAML does not allow. Placeholders such as
/// `@IMAGE@` start with them.
fn starts_with_a_mark(text: &str) -> bool {
    text.lines().any(|line| {
        let value = line
            .split_once(": ")
            .map_or(line, |(_, value)| value)
            .trim_start()
            .trim_start_matches("- ");
        value.starts_with(['@', '%']) && !line.starts_with('%')
    })
}

/// Whether the file is a ytt template. The code of ytt is in comments, so the file is YAML even
/// before it is rendered: `#@ code` or an annotation such as `#@overlay/match`, on a line of its
/// own or in the place of a value. All documents of such a file are templates, because an `#@ if`
/// in one may apply to the next (<https://carvel.dev/ytt/docs/latest/lang/>).
pub(super) fn is_ytt(text: &str) -> bool {
    let is_code = |line: &str| {
        line.split_once("#@").is_some_and(|(before, code)| {
            let key = before.trim_end();
            let stands = key.is_empty() || (key != before && key.ends_with([':', '-']));
            let word = code.split_once('/').map_or("", |(word, _)| word);
            let is_annotation =
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            stands && (code.starts_with(' ') || is_annotation)
        })
    };
    text.contains("#@") && text.lines().any(is_code)
}

/// Whether the text is to be replaced by another one: `${N}`, `$N`, `{{ .Values.n }}`, `<N>`,
/// `@N@`, `__N__`, `ENC[…]`.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
    let word = |part: &str| !part.is_empty() && part.bytes().all(in_word);
    MARKS.iter().any(|mark| text.contains(mark))
        || text.contains("$(")
        || text.starts_with("ENC[")
        || text.strip_prefix('$').is_some_and(word)
        || PAIRS.into_iter().any(|(start, end)| {
            text.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)).is_some_and(word)
        })
}

/// Whether an object cannot be judged before it is rendered: its name is a template, it is
/// encrypted, or a field that decides about its volumes has a placeholder.
pub(super) fn is_unrendered(manifest: &Manifest<'_, '_>, kind: ObjectKind) -> bool {
    let (tree, id) = (manifest.tree, manifest.id);
    let is_template_name = ["metadata.name", "metadata.namespace"].iter().any(|path| {
        tree.at(id, path)
            .is_some_and(|name| tree.scalars(name).any(|scalar| scalar.text.contains("{{")))
    });
    let decisive = match kind {
        ObjectKind::Workload(_) => Some("spec.strategy"),
        ObjectKind::Claim | ObjectKind::Volume => Some("spec.accessModes"),
        ObjectKind::StorageClass => Some("provisioner"),
        _ => None,
    };
    is_template_name
        || tree.entry(id, "sops").is_some()
        || decisive.is_some_and(|path| holds_placeholder(tree, id, path))
}

pub(super) fn holds_placeholder(tree: &Tree<'_>, id: Id, path: &str) -> bool {
    tree.at(id, path).is_some_and(|value| {
        tree.scalars(tree.target(value)).any(|scalar| is_placeholder(&scalar.text))
    })
}

/// Whether text that is not YAML names itself as an object of a kind that is read here. Only then
/// is it a manifest with an error; other text is not reported.
pub(super) fn says_it_is_a_manifest(text: &str) -> bool {
    let json = text.trim_start().starts_with('{');
    let before: &[char] = if json { &['{', ' ', '\t'] } else { &[] };
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let rest = line.trim_start_matches(before).trim_start_matches('"').strip_prefix(key)?;
            let value = rest.trim_start_matches('"').strip_prefix(':')?.split(" #").next()?;
            Some(value.trim_matches([' ', '\t', '\r', '"', '\'', ',', '}']))
        })
    };
    value("apiVersion")
        .zip(value("kind"))
        .is_some_and(|(version, kind)| kind == "List" || kind_of(version, kind).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_differ_from_words() {
        for text in [
            "${N}",
            "${N:-1}",
            "$N",
            "{{ .Values.n }}",
            "<N>",
            "<your class>",
            "@N@",
            "__N__",
            "%N%",
            "[[ n ]]",
            "$(N)",
            "ENC[AES256_GCM,data:x]",
            "<% n %>",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["", "web", "25%", "a@b", "<", "__", "$", "100%", "1<2>3", "_a_"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }

    #[test]
    fn templates_differ_from_mistakes() {
        for text in [
            "a: 1\n{{- if .Values.x }}\nb: 2\n",
            "a: {% n %}\n",
            "image: @IMAGE@\n",
            "args:\n- %ARGS%\n",
        ] {
            assert!(is_template(text), "{text}");
        }
        for text in ["a: [\n", "%YAML 1.1\n---\na: [", "a: b: c"] {
            assert!(!is_template(text), "{text}");
        }
    }

    #[test]
    fn code_of_ytt_differs_from_comments() {
        for text in [
            "#@ load(\"@ytt:data\", \"data\")\n---\na: 1\n",
            "a:\n  b: #@ data.values.b\n",
            "a:\n  - #@ data.values.b\n",
            "a:\n  #@ if/end data.values.b:\n  b: 1\n",
            "#@data/values\n---\na: 1\n",
            "a:\n  #@overlay/match missing_ok=True\n  b: 1\n",
        ] {
            assert!(is_ytt(text), "{text}");
        }
        for text in [
            "a: 1 # @ here\n",
            "#@author: me\na: 1\n",
            "a:#@ b\n",
            "a: 'b #@ c'\n",
            "a: b#@c/d\n",
            "#@/a/b\n",
        ] {
            assert!(!is_ytt(text), "{text}");
        }
    }

    #[test]
    fn only_kinds_that_are_read_make_a_manifest() {
        for (text, expected) in [
            ("apiVersion: apps/v1\nkind: Deployment # here\nspec: [\n", true),
            ("kind: \"PersistentVolumeClaim\"\r\napiVersion: 'v1'\r\nspec: [\r\n", true),
            ("{\"apiVersion\": \"v1\",\n \"kind\": \"Pod\", \"spec\": [\n", false),
            ("{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Pod\",\n  \"spec\": [\n", true),
            ("apiVersion: v1\nkind: List\nitems: [\n", true),
            ("apiVersion: v1\nkind: Service\nspec: [\n", false),
            ("apiVersion: example.com/v1\nkind: Deployment\nspec: [\n", false),
            ("spec:\n  apiVersion: v1\n  kind: Pod\n  a: [\n", false),
            ("a: [\n", false),
        ] {
            assert_eq!(says_it_is_a_manifest(text), expected, "{text}");
        }
    }
}
