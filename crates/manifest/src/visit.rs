//! The objects of a document: the document itself, or the items of a list or a Template.

use super::openshift_template;
use super::split::Part;
use super::tree::{Id, Shape, Tree};

/// One object of a manifest.
pub struct Manifest<'a, 't> {
    /// The document.
    pub tree: &'a Tree<'t>,
    /// The node of the object in `tree`.
    pub id: Id,
    /// `apps/v1` for example.
    pub api_version: &'a str,
    /// `Deployment` for example.
    pub kind: &'a str,
    /// The text of the document and its place in the file.
    pub part: &'a Part<'t>,
}

impl Manifest<'_, '_> {
    /// The line of the file that contains the byte `at` of the document; `None` for rendered
    /// output, whose lines the user does not see.
    pub(super) fn line(&self, at: usize) -> Option<usize> {
        let (line, _) = self.tree.lines().line_and_column(at);
        self.part.template().is_none().then(|| line + self.part.line - 1)
    }
}

/// Calls `each` with every object of the document and with its index in the list and in the lists
/// inside it. Returns the number of values that are not Kubernetes objects.
pub(super) fn visit<'t>(
    tree: &Tree<'t>,
    part: &Part<'t>,
    each: &mut dyn FnMut(&Manifest<'_, '_>, &[usize]),
) -> usize {
    visit_node(tree, part, tree.root(), None, &mut Vec::new(), each)
}

/// Does the same for the object `id`, or for the objects in it if it is a list. `of` is the version
/// and kind that a typed list implies for its items, which may then omit them.
fn visit_node<'t>(
    tree: &Tree<'t>,
    part: &Part<'t>,
    id: Id,
    of: Option<(&str, &str)>,
    path: &mut Vec<usize>,
    each: &mut dyn FnMut(&Manifest<'_, '_>, &[usize]),
) -> usize {
    let is_sequence = path.is_empty() && is_sequence_of_objects(tree, id);
    let api_version = tree.string(id, "apiVersion").or(of.map(|of| of.0));
    let kind = tree.string(id, "kind").or(of.map(|of| of.1));
    let (items, of_items) = match (api_version, kind) {
        _ if is_sequence => (id, None),
        (Some(api_version), Some(kind)) => match list_items(tree, id, api_version, kind) {
            Some(items) => {
                let item_kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
                (items, item_kind.map(|item| (api_version, item)))
            }
            None => {
                let manifest = Manifest { tree, id, api_version, kind, part };
                each(&manifest, path);
                return 0;
            }
        },
        _ => return 1,
    };
    let mut others = 0;
    for (number, item) in tree.children(items).enumerate() {
        path.push(number);
        others += visit_node(tree, part, item, of_items, path, each);
        path.pop();
    }
    others
}

/// Whether the document is a sequence of objects, as `argocd appset generate` prints it.
fn is_sequence_of_objects(tree: &Tree<'_>, id: Id) -> bool {
    let is_object = |item| {
        let text = |field| tree.string(item, field);
        text("apiVersion").is_some() && text("kind").is_some()
    };
    matches!(tree.node(id).shape, Shape::Sequence)
        && tree.children(id).next().is_some_and(is_object)
}

/// The fields that hold the objects of a list and of a Template.
pub(super) const ITEMS: [&str; 2] = ["items", "objects"];

/// The sequence of the items of a list or of the objects of a Template; `None` for other objects.
fn list_items(tree: &Tree<'_>, id: Id, api_version: &str, kind: &str) -> Option<Id> {
    let [items, objects] = ITEMS;
    let field = match kind.ends_with("List") {
        true => items,
        false if openshift_template::is_template(api_version, kind) => objects,
        false => return None,
    };
    tree.sequence(id, field)
}

/// The node of the object at `items` in a document that is parsed again; `None` if the document no
/// longer has it.
pub(crate) fn object_at(tree: &Tree<'_>, items: &[usize]) -> Option<Id> {
    items.iter().try_fold(tree.root(), |id, number| {
        let list = ITEMS
            .iter()
            .find_map(|field| tree.entry(id, field))
            .map_or(id, |(_, list)| tree.target(list));
        let is_sequence = matches!(tree.node(list).shape, Shape::Sequence);
        tree.children(list).nth(*number).filter(|_| is_sequence)
    })
}
