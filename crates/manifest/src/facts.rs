//! Facts from texts: manifests that stand for a cluster.

use engine::model::server_version::ServerVersion;
use engine::snapshot::Snapshot;

use super::error::{Problem, ReadError};
use super::objects::{Item, read_objects};
use super::position::Lines;
use super::source::Source;
use super::split::{Part, parts};
use super::tree::Tree;

/// The namespace of namespaced objects that name none, as in kubectl.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The field with the version of the API server in the output of `kubectl version`.
const SERVER_VERSION: &str = "serverVersion";

/// Facts that could not be read. Incomplete facts would mislead, so one fault in one file is enough
/// to fail; all faults are reported.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The files and objects that could not be read, in the order of the files; never empty.
    #[error("{}", lines(.0))]
    Unreadable(Vec<ReadError>),
    /// Some objects have placeholders, which no object in a cluster has.
    #[error(
        "{paths}: Placeholders such as ${{NAME}} or {{{{ .Values.name }}}} remain in {count} of the objects; expected facts as a cluster has them. Fill them in first, or leave those files out."
    )]
    Placeholders {
        /// The paths as given.
        paths: String,
        /// The number of such objects.
        count: usize,
    },
    /// No facts, most likely because the path is wrong.
    #[error(
        "{paths}: No facts were found here; expected YAML or JSON files with StorageClasses, PersistentVolumes, Nodes and the like."
    )]
    Nothing {
        /// The paths as given.
        paths: String,
    },
}

fn lines(errors: &[ReadError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Puts the objects of `sources`, and a `serverVersion` as `kubectl version` prints it, into
/// `cluster`. Kinds that no verdict depends on are ignored. `errors` are the files that could not be opened, and `paths` names all of them in messages.
///
/// # Errors
///
/// A text cannot be parsed, an object is malformed, or there are no facts. The facts that could be
/// read are in the cluster even then.
pub fn apply(
    cluster: &mut Snapshot,
    sources: &[Source],
    mut errors: Vec<ReadError>,
    paths: impl Fn() -> String,
) -> Result<(), FactsError> {
    let read = read_objects(sources, false);
    errors.extend(read.errors);
    let server = sources.iter().find_map(server_version);
    cluster.server = server.unwrap_or_default();
    let has_facts = !read.items.is_empty() || server.is_some();
    for mut item in read.items {
        if item.reference.name.is_empty() {
            errors.push(nameless(sources, &item));
            continue;
        }
        item.put_into(DEFAULT_NAMESPACE);
        cluster.apply(item.object);
    }
    if !errors.is_empty() {
        return Err(FactsError::Unreadable(errors));
    }
    if !read.templates.is_empty() {
        return Err(FactsError::Placeholders { paths: paths(), count: read.templates.len() });
    }
    if !has_facts {
        return Err(FactsError::Nothing { paths: paths() });
    }
    Ok(())
}

/// The version of the API server, if one of the documents says it.
fn server_version(source: &Source) -> Option<ServerVersion> {
    let text = source.text().ok().filter(|text| text.contains(SERVER_VERSION))?;
    parts(&text).iter().filter(|part| part.text.contains(SERVER_VERSION)).find_map(version_in)
}

fn version_in(part: &Part<'_>) -> Option<ServerVersion> {
    let tree = Tree::parse(part.text).ok()??;
    let (_, version) = tree.entry(tree.root(), SERVER_VERSION)?;
    let (server, _) = ServerVersion::read(tree.string(version, "gitVersion")?);
    Some(server)
}

fn nameless(sources: &[Source], item: &Item) -> ReadError {
    let source = &sources[item.place.source];
    let text = source.text().unwrap_or_default();
    let kind = item.reference.kind.to_string();
    let place = Lines::of(&text).line_and_column(item.start);
    ReadError::at(&source.name, place, Problem::Nameless { kind })
}
