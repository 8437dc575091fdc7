//! Which of a chart's values sets how a workload is replaced.

use std::fs;
use std::path::Path;

use manifest::position::line_and_column;
use manifest::split::{Part, parts};
use manifest::tree::{Id, Tree};

/// What charts call the value that becomes `spec.strategy`.
const NAMES: [&str; 4] = [
    "strategy",
    "updateStrategy",
    "deploymentStrategy",
    "strategyType",
];

/// A value of a chart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Its keys, joined with dots, as `--set` takes them.
    pub(super) path: String,
    /// Its line in the values file, counted from 1.
    pub(super) line: usize,
}

/// The lines between a field and the value that becomes it, in a template that is written as
/// most are.
const NEAR: usize = 3;

/// The value in the chart's `values.yaml` that becomes the strategy of an object of `kind`.
/// `template` is the file that the object was rendered from, by its path in the chart.
/// `None` where that does not tell which one it is.
pub(super) fn that_sets_the_strategy(chart: &Path, template: &Path, kind: &str) -> Option<Setting> {
    let values = fs::read_to_string(chart.join("values.yaml")).ok()?;
    let text = read_by(&chart.join(template), kind)?;
    let above = above(template);
    let mut read = settings(&values).into_iter().filter(|setting| {
        let path = setting.path.strip_prefix(&above);
        path.is_some_and(|path| becomes_the_strategy(path, &text))
    });
    let first = read.next()?;
    read.next().is_none().then_some(first)
}

/// Under which keys the values stand that a template of a chart inside the chart reads:
/// `db.` for `charts/db/templates/web.yaml`.
fn above(template: &Path) -> String {
    let mut parts = template.iter().map(|part| part.to_string_lossy());
    let mut above = String::new();
    while parts.next().is_some_and(|part| part == "charts")
        && let Some(chart) = parts.next()
    {
        above += &format!("{chart}.");
    }
    above
}

/// The part of the template `file` that makes objects of `kind`, and the helpers that it
/// includes. `None` where several parts do, or none says so.
fn read_by(file: &Path, kind: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let kinds = |text: &str| -> Vec<String> {
        let kinds = text.lines().filter_map(|line| line.strip_prefix("kind:"));
        kinds.map(|kind| kind.trim().to_owned()).collect()
    };
    let parts = parts(&text);
    let of_kind = |part: &&Part<'_>| kinds(part.text).iter().any(|it| it == kind);
    let of_kind: Vec<&Part<'_>> = parts.iter().filter(of_kind).collect();
    let mut read = match of_kind[..] {
        [part] => part.text.to_owned(),
        // A helper makes all of it.
        [] if kinds(&text).is_empty() => text,
        _ => return None,
    };
    let is_templates = |it: &&Path| it.file_name().is_some_and(|name| name == "templates");
    let folder = file.ancestors().find(is_templates)?;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        if entry.file_name().to_string_lossy().starts_with('_') {
            let helpers = fs::read_to_string(entry.path()).unwrap_or_default();
            read += &included(&read, &helpers);
        }
    }
    Some(read)
}

/// What is defined among the helpers and included by name.
fn included(text: &str, helpers: &str) -> String {
    let definitions = helpers.split("define \"").skip(1);
    let is_included = |definition: &&str| {
        let name = definition.split('"').next().unwrap_or_default();
        ["include", "template"]
            .map(|how| format!("{how} \"{name}\""))
            .iter()
            .any(|it| text.contains(it))
    };
    definitions.filter(is_included).collect()
}

/// Whether the text reads the value near the field that it is to become.
fn becomes_the_strategy(path: &str, text: &str) -> bool {
    let value = format!(".Values.{path}");
    let is_read = |line: &str| {
        line.match_indices(&value).any(|(at, _)| {
            let next = line[at + value.len()..].chars().next();
            !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
        })
    };
    let lines: Vec<&str> = text.lines().collect();
    let is_near = |at: usize| {
        let near = at.saturating_sub(NEAR)..(at + NEAR + 1).min(lines.len());
        let mut near = lines[near].iter();
        near.any(|line| line.trim_start().starts_with("strategy:"))
    };
    (0..lines.len()).any(|at| is_read(lines[at]) && is_near(at))
}

fn settings(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    if let Ok(Some(tree)) = Tree::parse(text) {
        collect(&tree, tree.root(), "", &mut found);
    }
    found
}

fn collect(tree: &Tree<'_>, id: Id, above: &str, found: &mut Vec<Setting>) {
    for (key, value) in tree.written_entries(id) {
        let name = tree.key_text(key).unwrap_or_default();
        let path = if above.is_empty() {
            name.clone().into_owned()
        } else {
            format!("{above}.{name}")
        };
        if NAMES.contains(&&*name) {
            let (line, _) = line_and_column(tree.text(), tree.node(key).start as usize);
            found.push(Setting { path, line });
        } else {
            collect(tree, value, &path, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_as_set_takes_them() {
        let text = "image: {tag: a}\nprimary:\n  # how\n  updateStrategy:\n    type: RollingUpdate\nstrategy: {}\nlist:\n- strategy: a\n";
        let found: Vec<(String, usize)> = settings(text)
            .into_iter()
            .map(|it| (it.path, it.line))
            .collect();
        assert_eq!(
            found,
            [
                ("primary.updateStrategy".to_owned(), 4),
                ("strategy".to_owned(), 6)
            ]
        );
        assert!(settings("a: [").is_empty());
    }

    const VALUES: &str = "\
strategy: {type: RollingUpdate}
api:
  strategy: {type: RollingUpdate}
backup:
  strategy: full
db:
  updateStrategy: RollingUpdate
";

    #[test]
    fn a_value_is_named_where_the_template_reads_it_for_the_strategy() {
        let web = "kind: Deployment\nspec:\n";
        let plain = format!("{web}  strategy: {{{{ toYaml .Values.strategy | nindent 4 }}}}\n");
        let with = format!(
            "{web}  {{{{- with .Values.api.strategy }}}}\n  strategy:\n    {{{{- toYaml . | nindent 4 }}}}\n  {{{{- end }}}}\n"
        );
        let within = plain.replace(".strategy", ".updateStrategy");
        let other = plain.replace("Deployment", "DaemonSet");
        let env = format!(
            "{web}  strategy: {{type: Recreate}}\n\n\n\n  env: {{{{ .Values.backup.strategy }}}}\n"
        );
        let longer = plain.replace(".strategy", ".strategyOfWeb");
        let scoped = format!("{web}  strategy: {{{{ .strategy }}}}\n");
        let both = format!("{plain}  # or {{{{ .Values.api.strategy }}}}\n");
        let helped = format!("{web}  {{{{- include \"web.how\" . | nindent 2 }}}}\n");
        let inner = "charts/db/templates/web.yaml";
        let own = "templates/web.yaml";
        let table = [
            ("as a whole", own, plain.clone(), Some("strategy")),
            (
                "deeper",
                own,
                plain.replace(".strategy", ".strategy.type"),
                Some("strategy"),
            ),
            ("with a block", own, with.clone(), Some("api.strategy")),
            (
                "of a chart inside",
                inner,
                within.clone(),
                Some("db.updateStrategy"),
            ),
            ("not of the one around", inner, plain.clone(), None),
            ("not of one inside", own, within, None),
            (
                "beside another kind",
                own,
                format!(
                    "{plain}---\n{}",
                    other.replace(".strategy", ".api.strategy")
                ),
                Some("strategy"),
            ),
            ("of another kind", own, other, None),
            ("twice", own, format!("{plain}---\n{with}"), None),
            ("for something else", own, env, None),
            ("with a longer name", own, longer, None),
            ("in a range", own, scoped, None),
            ("several", own, both, None),
            ("by a helper", own, helped, Some("api.strategy")),
            (
                "made by a helper",
                own,
                "{{ include \"web.how\" . }}\n".to_owned(),
                Some("api.strategy"),
            ),
        ];
        for (name, template, text, expected) in table {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(template);
            let templates = file.parent().unwrap();
            fs::create_dir_all(templates).unwrap();
            fs::write(&file, text).unwrap();
            let helpers = "{{- define \"web.how\" -}}\nstrategy:\n  type: {{ .Values.api.strategy }}\n{{- end }}\n{{- define \"web.not\" -}}\nstrategy: {{ .Values.strategy }}\n{{- end }}\n";
            fs::write(templates.join("_helpers.tpl"), helpers).unwrap();
            fs::write(folder.path().join("values.yaml"), VALUES).unwrap();
            let found = that_sets_the_strategy(folder.path(), Path::new(template), "Deployment");
            let found = found.map(|it| it.path);
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }
}
