//! The generators of ApplicationSets: lists, the folders and files of a repository, and
//! combinations of these.

use std::path::Path;

use manifest::delivery::value_of;
use serde_json::{Value, json};

use super::template::{Syntax, render};
use super::values::merge;
use super::world::{World, file_in};
use super::{MAX_GENERATED, Reason, at, items, text};

/// The most folders and files that are looked at for one pattern.
const MAX_ENTRIES: usize = 20_000;

/// Generators that ask somebody, and whom.
const ASKING: [(&str, &str); 5] = [
    ("clusters", "asks the cluster for its clusters"),
    ("clusterDecisionResource", "asks the cluster for a decision"),
    ("scmProvider", "asks a Git hosting service for repositories"),
    (
        "pullRequest",
        "asks a Git hosting service for pull requests",
    ),
    ("plugin", "asks a plugin"),
];

/// The parameters that a generator gives, one mapping for each Application.
pub(super) fn parameters(
    generator: &Value,
    syntax: Syntax,
    world: &World<'_>,
) -> Result<Vec<Value>, Reason> {
    for (name, asks) in ASKING {
        if generator.get(name).is_some() {
            return Err(format!("its generator {name} {asks}").into());
        }
    }
    let several = |of: &Value| -> Result<Vec<Vec<Value>>, Reason> {
        let all = items(of, &["generators"]).iter();
        all.map(|it| parameters(it, syntax, world)).collect()
    };
    let found = if let Some(list) = at(generator, &["list"]) {
        let mut elements = items(list, &["elements"]).to_vec();
        if let Some(Value::Array(more)) = text(list, &["elementsYaml"]).and_then(value_of) {
            elements.extend(more);
        }
        elements
    } else if let Some(git) = at(generator, &["git"]) {
        of_git(git, syntax, world)?
    } else if let Some(of) = at(generator, &["matrix"]) {
        matrix(of, syntax, world)?
    } else if let Some(of) = at(generator, &["merge"]) {
        merged(several(of)?, items(of, &["mergeKeys"]))
    } else {
        return Err("its generator is not one that is known here".into());
    };
    selected(found, generator)
}

/// Those that the generator's selector takes.
fn selected(mut found: Vec<Value>, generator: &Value) -> Result<Vec<Value>, Reason> {
    if at(generator, &["selector", "matchExpressions"]).is_some() {
        return Err("its generator selects by expressions".into());
    }
    let labels = at(generator, &["selector", "matchLabels"]);
    for (name, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let keys: Vec<&str> = name.split('.').collect();
        found.retain(|it| it.get(name).or_else(|| at(it, &keys)) == Some(value));
    }
    Ok(found)
}

/// Each of the first generator's with each of the second's, which may name the first's.
fn matrix(of: &Value, syntax: Syntax, world: &World<'_>) -> Result<Vec<Value>, Reason> {
    let [first, second] = items(of, &["generators"]) else {
        return Err("its matrix is not one of two generators".into());
    };
    let mut all = Vec::new();
    let outers = parameters(first, syntax, world)?;
    let seconds: Vec<(&Value, &Value)> = outers.iter().map(|outer| (second, outer)).collect();
    let seconds = render(&seconds, syntax, world);
    let seconds = seconds.unwrap_or_else(|_| vec![second.clone(); outers.len()]);
    for (outer, second) in outers.iter().zip(seconds) {
        for inner in parameters(&second, syntax, world)? {
            let mut both = outer.clone();
            merge(&mut both, &inner);
            all.push(both);
            if all.len() > MAX_GENERATED {
                return Ok(all);
            }
        }
    }
    Ok(all)
}

/// The first generator's, overridden by those of the others that agree with it on the keys.
fn merged(mut of: Vec<Vec<Value>>, keys: &[Value]) -> Vec<Value> {
    if of.is_empty() {
        return Vec::new();
    }
    let mut base = of.remove(0);
    let keys: Vec<Vec<&str>> = keys
        .iter()
        .filter_map(|key| Some(key.as_str()?.split('.').collect()))
        .collect();
    for other in of.iter().flatten() {
        for it in &mut base {
            if keys.iter().all(|key| at(it, key) == at(other, key)) {
                merge(it, other);
            }
        }
    }
    base
}

/// The folders, or the contents of the files, of a repository that a pattern takes.
fn of_git(git: &Value, syntax: Syntax, world: &World<'_>) -> Result<Vec<Value>, Reason> {
    let url = text(git, &["repoURL"]).unwrap_or_default();
    let top = match world.is_here(url) {
        true => world.repository.root().to_owned(),
        false => world.other(url, text(git, &["revision"]))?,
    };
    let is_excluded = |it: &Value| at(it, &["exclude"]) == Some(&Value::Bool(true));
    let patterns = |field: &str| -> (Vec<String>, Vec<String>) {
        let all = items(git, &[field]).iter();
        let (out, taken): (Vec<&Value>, Vec<&Value>) = all.partition(|it| is_excluded(it));
        let paths = |all: Vec<&Value>| {
            let paths = all.into_iter().filter_map(|it| text(it, &["path"]));
            paths.map(str::to_owned).collect()
        };
        (paths(taken), paths(out))
    };
    let mut found = Vec::new();
    for (field, is_folder) in [("directories", true), ("files", false)] {
        let (taken, out) = patterns(field);
        let mut paths: Vec<String> = Vec::new();
        for pattern in &taken {
            matching(&top, pattern, is_folder, &mut paths);
        }
        paths.sort();
        paths.dedup();
        paths.retain(|path| !out.iter().any(|pattern| matches(pattern, path)));
        for path in paths {
            found.extend(of_path(git, &path, is_folder, &top)?);
        }
    }
    if let Some(values) = at(git, &["values"]) {
        let templates: Vec<(&Value, &Value)> = found.iter().map(|it| (values, it)).collect();
        let values = render(&templates, syntax, world)?;
        for (parameters, values) in found.iter_mut().zip(values) {
            merge(parameters, &json!({ "values": values }));
        }
    }
    Ok(found)
}

fn of_path(git: &Value, path: &str, is_folder: bool, top: &Path) -> Result<Vec<Value>, Reason> {
    let (folder, file) = match is_folder {
        true => (path, None),
        false => path
            .rsplit_once('/')
            .map_or(("", Some(path)), |(a, b)| (a, Some(b))),
    };
    let segments: Vec<&str> = folder.split('/').collect();
    let basename = segments.last().copied().unwrap_or_default();
    let mut parts = json!({
        "path": folder,
        "basename": basename,
        "basenameNormalized": normalized(basename),
        "segments": segments,
    });
    if let Some(file) = file {
        parts["filename"] = json!(file);
        parts["filenameNormalized"] = json!(normalized(file));
    }
    let contents = match file {
        None => vec![json!({})],
        Some(_) => {
            let (_, text) = file_in(top, path)?;
            match value_of(&text) {
                Some(Value::Array(items)) => items,
                Some(value @ Value::Object(_)) => vec![value],
                _ => return Err(format!("{path} is not a YAML mapping").into()),
            }
        }
    };
    let mut all = Vec::new();
    for mut parameters in contents {
        let parts = json!({ "path": parts });
        match text(git, &["pathParamPrefix"]) {
            Some(prefix) => merge(&mut parameters, &json!({ prefix: parts })),
            None => merge(&mut parameters, &parts),
        }
        all.push(parameters);
    }
    Ok(all)
}

/// As part of a name: lower case, with `-` for what a name may not have.
fn normalized(name: &str) -> String {
    let lower = name.to_lowercase();
    let letters = lower.chars();
    let name: String = letters
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    name.trim_matches(['-', '.']).to_owned()
}

/// Adds the paths, from `top`, of what the pattern takes. Links are not followed.
fn matching(top: &Path, pattern: &str, is_folder: bool, into: &mut Vec<String>) {
    let mut waiting = vec![String::new()];
    let mut seen = 0;
    while let Some(inner) = waiting.pop() {
        let Ok(entries) = top.join(&inner).read_dir() else {
            continue;
        };
        for entry in entries.flatten() {
            seen += 1;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            if seen > MAX_ENTRIES || name.starts_with('.') {
                continue;
            }
            let path = match inner.as_str() {
                "" => name,
                inner => format!("{inner}/{name}"),
            };
            if kind.is_dir() == is_folder && matches(pattern, &path) {
                into.push(path.clone());
            }
            if kind.is_dir() && may_hold(pattern, &path) {
                waiting.push(path);
            }
        }
    }
}

/// Whether something below the folder may match.
fn may_hold(pattern: &str, folder: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let folder: Vec<&str> = folder.split('/').collect();
    let deep = pattern.iter().position(|part| *part == "**");
    let end = deep.unwrap_or(pattern.len()).min(folder.len());
    (deep.is_some() || folder.len() < pattern.len())
        && pattern[..end]
            .iter()
            .zip(&folder)
            .all(|(pattern, name)| fits(pattern, name))
}

/// Whether the path fits the pattern: `*` stands for a part of a name, `**` for folders.
fn matches(pattern: &str, path: &str) -> bool {
    fn parts(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            (["**", rest @ ..], _) if parts(rest, path) => true,
            (["**", ..], [_, inner @ ..]) => parts(pattern, inner),
            ([first, rest @ ..], [name, inner @ ..]) => fits(first, name) && parts(rest, inner),
            _ => false,
        }
    }
    let pattern: Vec<&str> = pattern.trim_start_matches("./").split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    parts(&pattern, &path)
}

/// Whether a name fits a pattern with `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last `*` is, and how much of the name it takes.
    let mut star = None;
    while n < name.len() {
        if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n] && pattern[p] != '*') {
            (p, n) = (p + 1, n + 1);
        } else if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            (p, n) = (at + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{matches, may_hold, merged, normalized};

    #[test]
    fn patterns_take_paths() {
        for (pattern, path, expected) in [
            ("apps/*", "apps/web", true),
            ("apps/*", "apps/web/prod", false),
            ("apps/w?b", "apps/web", true),
            ("apps/*-db", "apps/shop-a-db", true),
            ("apps/**/config.json", "apps/config.json", true),
            ("apps/**/config.json", "apps/a/b/config.json", true),
            ("**/config.json", "apps/a/values.json", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
        assert!(may_hold("apps/*/x", "apps/web") && !may_hold("apps/*", "apps/web"));
        assert!(may_hold("a/**/x", "a/b/c/d") && !may_hold("a/**/x", "b"));
    }

    #[test]
    fn what_agrees_on_the_keys_is_merged() {
        let base = vec![json!({"name": "a", "x": 1}), json!({"name": "b", "x": 1})];
        let other = vec![json!({"name": "b", "x": 2}), json!({"name": "c", "x": 3})];
        assert_eq!(
            merged(vec![base, other], &[json!("name")]),
            [json!({"name": "a", "x": 1}), json!({"name": "b", "x": 2})]
        );
    }

    #[test]
    fn names_are_normalized() {
        assert_eq!(normalized("My_App.v2-"), "my-app.v2");
    }
}
