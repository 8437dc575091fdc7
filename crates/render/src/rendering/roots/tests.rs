use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Places, Repository, Root, RootKind, find};
use crate::fetch::{Fetch, FetchOptions, Fetcher};
use crate::reason::Reason;

fn roots(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<Root>) {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        paths.push(path);
    }
    let roots = found(&paths, folder.path());
    (folder, roots)
}

/// The roots among the files of the repository, with fetching off.
fn found(paths: &[PathBuf], repository: &Path) -> Vec<Root> {
    let options = FetchOptions { fetch: Fetch::Never, fetch_cache: None, fetch_from: Vec::new() };
    let places = Places {
        repository: &Repository::at(repository),
        fetcher: &Fetcher::new(&options, Duration::ZERO, |_| ()),
    };
    find(paths, places)
}

fn names(folder: &Path, roots: &[Root]) -> Vec<PathBuf> {
    roots.iter().map(|root| root.folder.strip_prefix(folder).unwrap().to_owned()).collect()
}

#[test]
fn only_what_no_other_names_is_a_root() {
    let (folder, found) = roots(&[
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("base/web.yaml", ""),
        ("base/other.yaml", ""),
        ("dev/kustomization.yml", "resources: [../base]\n"),
        (
            "prod/Kustomization",
            "bases: [../base]\ncomponents: [../tls]\npatches: [{path: size.yaml}]\n",
        ),
        ("prod/size.yaml", ""),
        ("tls/kustomization.yaml", "kind: Component\n"),
        ("self/kustomization.yaml", "resources: [../self]\n"),
        ("a/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yaml", "resources: [../a]\n"),
        ("far/kustomization.yaml", "resources: [github.com/owner/repo//deploy?ref=v1]\n"),
        (
            "flux/kustomization.yaml",
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n",
        ),
    ]);
    let expected: Vec<PathBuf> = ["a", "dev", "far", "prod", "self"].map(Into::into).into();
    assert_eq!(names(folder.path(), &found), expected);
    let real = fs::canonicalize(folder.path()).unwrap();
    let prod = &found[3];
    for (file, held) in [
        ("base/web.yaml", true),
        ("base/kustomization.yaml", true),
        ("prod/size.yaml", true),
        ("tls/kustomization.yaml", true),
        ("base/other.yaml", false),
        ("dev/kustomization.yml", false),
    ] {
        assert_eq!(prod.files.contains_key(&real.join(file)), held, "{file}");
    }
    let far = &found[2];
    let url = "github.com/owner/repo//deploy?ref=v1";
    assert_eq!(far.refused, Some(Reason::elsewhere(url, &format!("it names {url}"))));
}

#[test]
fn what_a_kustomization_may_change_is_all_that_it_reaches() {
    let (folder, found) = roots(&[
        ("all/kustomization.yaml", "resources: [../db, ../web, x.yaml]\n"),
        ("all/x.yaml", ""),
        ("db/kustomization.yaml", "resources: [db.yaml]\n"),
        ("db/db.yaml", ""),
        ("web/kustomization.yaml", "namespace: web\nresources: [base, web.yaml]\n"),
        ("web/web.yaml", ""),
        ("web/base/kustomization.yaml", "resources: [in, base.yaml]\npatches: [{patch: a}]\n"),
        ("web/base/base.yaml", ""),
        ("web/base/in/kustomization.yaml", "resources: [in.yaml]\n"),
        ("web/base/in/in.yaml", ""),
    ]);
    let [root] = &found[..] else {
        panic!("{found:#?}");
    };
    let real = fs::canonicalize(folder.path()).unwrap();
    for (file, changed_by) in [
        ("all/x.yaml", None),
        ("db/db.yaml", None),
        ("web/web.yaml", None),
        ("web/base/base.yaml", Some("web")),
        ("web/base/in/in.yaml", Some("web")),
    ] {
        let expected = changed_by.map(|inner| folder.path().join(inner));
        assert_eq!(root.files[&real.join(file)], expected, "{file}");
    }
}

#[test]
fn charts_hold_all_their_files_and_their_own_charts() {
    let (folder, found) = roots(&[
        ("charts/web/Chart.yaml", "name: Web_App\nversion: 1.0.0\n"),
        ("charts/web/templates/web.yaml", ""),
        ("charts/web/charts/db/Chart.yaml", "name: db\n"),
        ("charts/web/kustomization.yaml", "resources: []\n"),
        ("charts/common/Chart.yaml", "name: common\ntype: library\n"),
        ("charts/broken/Chart.yaml", "name: [\n"),
    ]);
    // Helm itself reports what is wrong with the broken chart.
    let [broken, web] = &found[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(names(folder.path(), &found), ["charts/broken", "charts/web"].map(PathBuf::from));
    assert_eq!(broken.release, "release");
    assert_eq!(web.kind, RootKind::Chart);
    assert_eq!(web.release, "web-app");
    let real = fs::canonicalize(folder.path()).unwrap();
    assert_eq!(web.real, real.join("charts/web"));
}
