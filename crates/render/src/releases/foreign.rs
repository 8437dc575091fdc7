//! Formats that only their own program renders. Objects and files of these formats are counted, and
//! the report names the command whose output `check -` can read.

use std::path::Path;

use report::{Cause, command_with};

use super::Reason;
use crate::reason::piped;

const FLEET: &str = "fleet apply -o BUNDLE NAME FOLDER && fleet target --bundle-file BUNDLE --dump-input-list > INPUT && fleet deploy --input-file INPUT --dry-run";
const HELM: &str = "helm template NAME CHART --repo URL -n NAMESPACE -f VALUES";

/// The reason why an object of the kind, in this file, is not rendered.
pub(super) fn of_kind(kind: &str, file: &str) -> Reason {
    match kind {
        "ApplicationSet" => {
            let command = command_with("argocd appset generate", file) + " -o yaml";
            foreign("only Argo CD generates its Applications", &command)
        }
        "HelmChart" => {
            foreign("only its controller renders it; its spec has the words for the command", HELM)
        }
        _ => Reason::of(Cause::Foreign, "only its controller knows what it makes"),
    }
}

/// The format of a file that contains no object, and the reason why it is not rendered.
pub(super) fn of_file(path: &Path, shown: &str) -> Option<(&'static str, Reason)> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().and_then(Path::file_name);
    match name.strip_suffix(".gotmpl").unwrap_or(name) {
        "fleet.yaml" | "fleet.yml" => Some((
            "fleet.yaml",
            foreign("only fleet renders it; the command needs a name and the folder", FLEET),
        )),
        "helmfile.yaml" | "helmfile.yml" => Some(helmfile(shown)),
        _ if folder.is_some_and(|folder| folder == "helmfile.d") => Some(helmfile(shown)),
        _ => None,
    }
}

fn helmfile(file: &str) -> (&'static str, Reason) {
    let command = command_with("helmfile --file", file) + " template";
    ("helmfile.yaml", foreign("only helmfile renders it", &command))
}

fn foreign(text: &str, command: &str) -> Reason {
    Reason { command: Some(piped(command)), ..Reason::of(Cause::Foreign, text) }
}
