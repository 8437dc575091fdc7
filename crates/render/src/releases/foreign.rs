//! Formats that only their own program renders. Objects and files of these formats are counted, and
//! the report names the command whose output `check -` can read.

use std::path::Path;

use report::Missing;

use super::Reason;

const HELMFILE: &str = "`helmfile template | multi-attach-guard check -` judges it";
const FLEET: &str = "`fleet apply -o BUNDLE NAME FOLDER`, `fleet target --bundle-file BUNDLE --dump-input-list > INPUT` and `fleet deploy --input-file INPUT --dry-run | multi-attach-guard check -` judge it";

const ARGO_CD: &str =
    "`argocd appset generate FILE -o yaml | multi-attach-guard check -` judges its Applications";
const HELM: &str = "`helm template NAME CHART --repo URL -n NAMESPACE -f VALUES | multi-attach-guard check -`, filled in from its spec, judges it";

/// The reason why an object of the kind is not rendered.
pub(super) fn of_kind(kind: &str) -> Reason {
    let text = match kind {
        "ApplicationSet" => ARGO_CD,
        "HelmChart" => HELM,
        _ => "only its controller knows what it makes",
    };
    Reason::of(Missing::Tool, text)
}

/// The format of a file that contains no object, and the reason why it is not rendered.
pub(super) fn of_file(path: &Path) -> Option<(&'static str, Reason)> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().and_then(Path::file_name);
    let (format, command) = match name {
        "fleet.yaml" | "fleet.yml" => ("fleet.yaml", FLEET),
        "helmfile.yaml" | "helmfile.yml" => ("helmfile.yaml", HELMFILE),
        _ if folder.is_some_and(|folder| folder == "helmfile.d") => ("helmfile.yaml", HELMFILE),
        _ => return None,
    };
    Some((format, Reason::of(Missing::Tool, command)))
}
