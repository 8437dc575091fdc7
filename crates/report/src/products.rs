//! The knowledge of the catalog about drivers, about classes by the names that distributions give
//! them, and about products, without any cluster.

use serde::Serialize;

use engine::model::access_mode::AccessMode;
use engine::model::storage_class::StorageClass;
use engine::model::words::nearest;
use engine::snapshot::Lookup;
use engine::storage::{
    Catalog, CatalogError, ClassModes, ClassSummary, Listed, ModeSummary, known_classes,
    likely_classes, listing,
};

/// A product, or a class that a distribution creates.
#[derive(Serialize)]
pub struct Product {
    /// The capabilities of the product.
    #[serde(flatten)]
    pub summary: ClassSummary,
    #[serde(flatten)]
    listed: Listed,
}

impl Product {
    fn new(catalog: &Catalog, listed: Listed, class: &StorageClass) -> Self {
        let attach = catalog.attach(class.driver(), |_| Lookup::Absent);
        Self { summary: ClassSummary::new(catalog, class, ClassModes::default(), attach), listed }
    }

    /// The details to print besides the summary, each with its name.
    pub fn details(&self) -> Vec<(&'static str, &str)> {
        let listed = &self.listed;
        let sharing = listed.sharing.iter().map(|text| ("Sharing", text.as_str()));
        let sources = listed.sources.iter().map(|source| ("Source", source.as_str()));
        sharing.chain(sources).collect()
    }
}

/// All products of the catalog, in its order.
///
/// # Errors
/// The embedded catalog cannot be read, because the build is faulty.
pub fn all(catalog: &Catalog) -> Result<Vec<Product>, CatalogError> {
    let products = listing()?.into_iter().map(|listed| {
        let class = class_of(&listed.name);
        Product::new(catalog, listed, &class)
    });
    Ok(products.collect())
}

/// The products with this name, the likeliest first: the driver of that name; otherwise the classes
/// to which distributions give that name; otherwise the products that are [`called`] so; otherwise
/// those of the classes whose names begin with it.
///
/// # Errors
/// The same as for [`all`].
pub fn named(name: &str, catalog: &Catalog) -> Result<Vec<Product>, CatalogError> {
    let spelled = letters(name);
    let known = known_classes().iter();
    let classes: Vec<StorageClass> = match likely_classes(name) {
        _ if catalog.get(name).is_some() => vec![class_of(name)],
        [] => known
            .clone()
            .filter(|class| letters(&class.metadata.name) == spelled)
            .cloned()
            .collect(),
        likely => likely.to_vec(),
    };
    let mut products = of_classes(&classes, catalog)?;
    if products.is_empty() {
        products = called(name, all(catalog)?, |product| &product.summary);
        // If a product exists in several generations, only the current ones remain.
        if products.iter().any(|product| product.listed.is_current()) {
            products.retain(|product| product.listed.is_current());
        }
    }
    if products.is_empty() && !spelled.is_empty() {
        let begin = known.filter(|class| letters(&class.metadata.name).starts_with(&spelled));
        products =
            of_classes(&begin.map(|class| class_of(class.driver())).collect::<Vec<_>>(), catalog)?;
    }
    Ok(products)
}

/// The products that make the volumes of these classes, in this order; equal ones once.
fn of_classes(classes: &[StorageClass], catalog: &Catalog) -> Result<Vec<Product>, CatalogError> {
    let listing = listing()?;
    let mut products: Vec<Product> = Vec::new();
    for class in classes {
        let entry = catalog.get(class.driver());
        let listed =
            listing.iter().find(|listed| entry.is_some_and(|entry| entry.name == listed.name));
        let product = listed.map(|listed| Product::new(catalog, listed.clone(), class));
        let is_new = |new: &Product| products.iter().all(|known| known.summary != new.summary);
        products.extend(product.filter(is_new));
    }
    Ok(products)
}

/// A class of this provisioner, without parameters.
fn class_of(provisioner: &str) -> StorageClass {
    StorageClass { provisioner: provisioner.into(), ..StorageClass::default() }
}

/// The driver, the class or the product that `name` was most likely meant to be.
pub fn meant(name: &str, catalog: &Catalog) -> Option<String> {
    // A likeness of 0.8 allows one other letter in three; among hundreds of names, some are as like
    // as that to any longer word.
    let least = if name.chars().count() > 4 { 0.9 } else { 0.8 };
    let products = all(catalog).unwrap_or_default();
    let classes = known_classes().iter().map(|class| class.metadata.name.as_str());
    let drivers = products.iter().map(|product| product.summary.provisioner.as_str());
    let titles = products.iter().filter_map(|product| product.summary.title.as_deref());
    let titles = titles.map(|title| title.split_once(" (").map_or(title, |(before, _)| before));
    nearest(name, drivers.chain(titles).chain(classes), least).map(str::to_owned)
}

/// Those of `all` whose names have a word that begins with each word of `name`, first those whose
/// names begin so; if there are none, those whose names have its letters from the start of a word
/// on, however they are separated.
pub fn called<T>(name: &str, mut all: Vec<T>, summary: impl Fn(&T) -> &ClassSummary) -> Vec<T> {
    let (wanted, spelled) = (words(name), letters(name));
    if wanted.is_empty() {
        return Vec::new();
    }
    let names = |one: &T| -> Vec<Vec<String>> {
        let ClassSummary { class, provisioner, title, .. } = summary(one);
        let title = title.as_deref().unwrap_or_default();
        [class, provisioner, title].map(words).into()
    };
    let begins = |known: &str, word: &String| known.starts_with(word.as_str());
    let has_words = |one: &T| {
        let known = names(one).concat();
        wanted.iter().all(|word| known.iter().any(|other| begins(other, word)))
    };
    if !all.iter().any(has_words) {
        let is_spelled = |known: &Vec<String>| {
            (0..known.len()).any(|first| known[first..].concat().starts_with(&spelled))
        };
        all.retain(|one| names(one).iter().any(is_spelled));
        return all;
    }
    all.retain(has_words);
    all.sort_by_key(|one| {
        !names(one).iter().any(|known| {
            known.len() >= wanted.len()
                && known.iter().zip(&wanted).all(|(other, word)| begins(other, word))
        })
    });
    all
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    name.to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A name without capitals and without what separates its words.
fn letters(name: &str) -> String {
    words(name).concat()
}

/// Lists the products, one per line.
pub fn list(products: &[Product]) -> String {
    let width =
        products.iter().map(|product| product.summary.provisioner.len()).max().unwrap_or_default();
    let line = |product: &Product| {
        let summary = &product.summary;
        format!(
            "{:width$}  {:14}  {:14}  {}\n",
            summary.provisioner,
            format!("files: {}", shares(&summary.filesystem)),
            format!("blocks: {}", shares(&summary.block)),
            summary.title.as_deref().unwrap_or_default()
        )
    };
    format!(
        "Which storage pods on several nodes can write to (ReadWriteMany):\n\n{}",
        products.iter().map(line).collect::<String>()
    )
}

/// Whether pods on several nodes can write to a volume.
fn shares(modes: &ModeSummary) -> &'static str {
    let shared = AccessMode::ReadWriteMany;
    match modes.modes {
        None => "unknown",
        Some(granted) if granted.contains(shared) => "yes",
        _ if modes.conditional.iter().any(|grant| grant.modes.contains(shared)) => "maybe",
        Some(_) => "no",
    }
}

/// The columns of [`table`].
pub const COLUMNS: [&str; 7] =
    ["product", "driver", "files", "blocks", "attached", "takes", "sure"];

/// The current products, one row each, with the section of the catalog before the cells.
pub fn table(products: &[Product]) -> Vec<(&str, [String; 7])> {
    products
        .iter()
        .filter(|product| product.listed.is_current())
        .map(|product| (product.listed.part.as_str(), cells(product)))
        .collect()
}

/// The page `docs/storage.md`.
pub fn page(products: &[Product]) -> String {
    let mut page = "# Which storage can be shared\n\n\
        Whether pods on several nodes can write to one volume (ReadWriteMany), by cloud and product. \
        *maybe* means: on the condition in the column *takes*. This page is made from the catalog: \
        `multi-attach-guard capabilities --markdown`. \
        `multi-attach-guard capabilities PRODUCT` says more of one product, with its sources and \
        without a cluster; `multi-attach-guard capabilities` says it of the classes of a cluster.\n\n\
        *Attached* storage is refused on a second node by Kubernetes: ReadWriteOnce volumes of it hang in \
        a rolling update. [Choose storage](choose-storage.md) helps to decide.\n"
        .to_owned();
    for rows in table(products).chunk_by(|(a, _), (b, _)| a == b) {
        let (part, columns) = (rows[0].0, COLUMNS.join(" | "));
        page += &format!("\n## {part}\n\n| {columns} |\n|---|---|---|---|---|---|---|\n");
        for (_, cells) in rows {
            let mut cells = cells.each_ref().map(|cell| cell.replace('|', "\\|"));
            cells[1] = format!("`{}`", cells[1]);
            page += &format!("| {} |\n", cells.join(" | "));
        }
    }
    page
}

fn cells(product: &Product) -> [String; 7] {
    let summary = &product.summary;
    let attached = match summary.attach {
        _ if summary.node_local != "no" => "on its node",
        attach if attach.starts_with("not attached") => "no",
        attach if attach.starts_with("attached (assumed)") => "assumed",
        attach if attach.starts_with("attached") => "yes",
        _ => "unknown",
    };
    let mut takes: Vec<String> = product.listed.sharing.iter().map(ToString::to_string).collect();
    for (what, modes) in [("files", &summary.filesystem), ("blocks", &summary.block)] {
        let shared = modes
            .conditional
            .iter()
            .filter(|grant| grant.modes.contains(AccessMode::ReadWriteMany));
        takes.extend(shared.map(|grant| {
            let condition = grant.condition.trim_start_matches("possible only when ");
            format!("{what}: {condition}")
        }));
    }
    let sure = match summary.filesystem.confidence.or(summary.block.confidence) {
        Some(words) if words.starts_with("verified") => "verified",
        Some(words) if words.starts_with("the vendor") => "vendor",
        _ => "believed",
    };
    [
        summary.title.as_deref().unwrap_or_default(),
        &summary.provisioner,
        shares(&summary.filesystem),
        shares(&summary.block),
        attached,
        &takes.join("; "),
        sure,
    ]
    .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Vec<String> {
        let products = named(name, Catalog::embedded().unwrap()).unwrap();
        products.into_iter().map(|product| product.summary.provisioner.to_string()).collect()
    }

    #[test]
    fn drivers_classes_and_products_are_found_by_name() {
        for (name, expected) in [
            ("ebs.csi.aws.com", &["ebs.csi.aws.com"][..]),
            ("gp3", &["ebs.csi.aws.com"]),
            ("ebs", &["ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "csi.block.xsky.com"]),
            ("Azure Disk", &["disk.csi.azure.com", "localdisk.csi.acstor.io"]),
            ("longhorn", &["driver.longhorn.io"]),
            ("azureDisk", &["disk.csi.azure.com"]),
            ("digital ocean", &["dobs.csi.digitalocean.com"]),
            ("hcloud", &["csi.hetzner.cloud"]),
            ("Rook Ceph Block", &["rook-ceph.rbd.csi.ceph.com"]),
            ("csi-disk", &["everest-csi-provisioner"]),
            ("alicloud", &["diskplugin.csi.alibabacloud.com"]),
            // The likeliest first, and equal ones once.
            ("standard-rwo", &["pd.csi.storage.gke.io", "disk.csi.azure.com"]),
            ("managed-csi", &["disk.csi.azure.com"]),
            (
                "standard",
                &[
                    "kubernetes.io/gce-pd",
                    "kubernetes.io/cinder",
                    "rancher.io/local-path",
                    "k8s.io/minikube-hostpath",
                ],
            ),
            ("rook.rbd.csi.ceph.com", &["rook.rbd.csi.ceph.com"]),
            ("no such storage", &[]),
            ("", &[]),
            ("*", &[]),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
    }

    #[test]
    fn a_slip_is_understood_and_nonsense_is_not() {
        for (name, expected) in [
            ("longhron", Some("longhorn")),
            ("gp4", Some("gp3")),
            ("Azure Dsk", Some("Azure Disk")),
            ("ebs.csi.aws.co", Some("ebs.csi.aws.com")),
            ("rook-cephs", Some("rook-cephfs")),
            ("no_such_storage", None),
            ("fast", None),
            ("", None),
        ] {
            let found = meant(name, Catalog::embedded().unwrap());
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn what_unlocks_sharing_is_said() {
        let ebs = named("ebs", Catalog::embedded().unwrap()).unwrap();
        let summary = &ebs[0].summary;
        assert_eq!((shares(&summary.filesystem), shares(&summary.block)), ("no", "maybe"));
        let io2 = &cells(&ebs[0])[5];
        assert!(io2.contains("io2"), "{io2}");
        let longhorn = named("longhorn", Catalog::embedded().unwrap()).unwrap();
        assert_eq!(shares(&longhorn[0].summary.filesystem), "yes");
        let client = &cells(&longhorn[0])[5];
        assert!(client.contains("NFS client"), "{client}");
    }

    #[test]
    fn the_page_in_docs_is_up_to_date() {
        const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/storage.md");
        let page = page(&all(Catalog::embedded().unwrap()).unwrap());
        assert!(
            page == std::fs::read_to_string(FILE).unwrap(),
            "docs/storage.md is stale. Run make rules."
        );
    }
}
