//! Finds the file from which a rendered object came.
//!
//! Helm writes `# Source: chart/templates/web.yaml` above each object. Kustomize annotates each
//! object with its origin if asked; [`of_kustomize`] converts that to the same comment, so that all
//! rendered texts name their origin in the same way.

use std::path::{Path, PathBuf};

use manifest::source::shown;

/// The start of the line above an object.
const SOURCE: &str = "# Source: ";

/// The annotation of kustomize's `buildMetadata: [originAnnotations]`.
const ORIGIN: &str = "config.kubernetes.io/origin: |";

/// Helm's output with the files named as the user names them. `chart` is the folder that Helm calls
/// by the chart's name.
pub(super) fn of_helm(text: &str, chart: &Path) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    for line in text.split_inclusive('\n') {
        let source = line.strip_prefix(SOURCE).map(str::trim_end);
        match source.and_then(|file| file.split_once('/')) {
            Some((_, inner)) => out += &format!("{SOURCE}{}\n", shown(&chart.join(inner))),
            None => out += line,
        }
    }
    out
}

/// Kustomize's output with a line above each object that names its file. `file_of` returns the
/// path, with links followed, for an origin. A file below `here`, the working directory, is named
/// by the path from there.
pub(super) fn of_kustomize(
    text: &str,
    file_of: impl Fn(&str) -> PathBuf,
    here: &Path,
    fetched: Option<&Path>,
) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    for document in text.split_inclusive("\n---\n") {
        if let Some(origin) = origin(document) {
            let real = file_of(origin);
            let fetched = fetched.and_then(|top| crate::fetch::display_name(top, &real));
            let local = real.strip_prefix(here).unwrap_or(&real);
            let file = shown(fetched.as_deref().unwrap_or(local));
            out.push_str(&format!("{SOURCE}{file}\n"));
        }
        out.push_str(document);
    }
    out
}

/// The file that the annotation of a document names.
fn origin(document: &str) -> Option<&str> {
    let mut lines = document.lines();
    let indent = lines.find_map(|line| line.find(ORIGIN).filter(|at| is_blank(&line[..*at])))?;
    lines
        .take_while(|line| line.len() > indent && is_blank(&line[..=indent]))
        .map(str::trim)
        .find_map(|line| {
            line.strip_prefix("path: ").or_else(|| line.strip_prefix("configuredIn: "))
        })
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{of_helm, of_kustomize};
    use crate::files::normal;

    #[test]
    fn files_are_named_as_the_user_names_them() {
        let of_chart = "---\n# Source: web/templates/web.yaml\nkind: A\n---\n# Source: web/charts/db/templates/db.yaml\nkind: B\n";
        assert_eq!(
            of_helm(of_chart, Path::new("./apps/shop")),
            "---\n# Source: apps/shop/templates/web.yaml\nkind: A\n---\n# Source: apps/shop/charts/db/templates/db.yaml\nkind: B\n"
        );
        let of_kustomization = "kind: A\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      path: ../../work/base/a.yaml\n  name: a\n---\nkind: B\n---\nkind: C\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      configuredIn: ../../other/kustomization.yaml\n      configuredBy: {}\n";
        let file_of = |origin: &str| normal(&Path::new("/tmp/x").join(origin));
        let named = of_kustomize(of_kustomization, file_of, Path::new("/work"), None);
        let sources: Vec<&str> = named.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(sources, ["# Source: base/a.yaml", "# Source: /other/kustomization.yaml"]);
        assert_eq!(named.matches("\n---\n").count(), 2);
    }
}
