use engine::model::object::Object;
use engine::rules::{RULES, codes};
use engine::storage::Catalog;
use manifest::objects::read_objects;
use serde_json::Value;

use super::*;

const WEB: &str = include_str!("../../../docs/site/playground/playground.html");

/// The example on the page.
fn example() -> &'static str {
    let (_, rest) = WEB.split_once("wrap=\"off\">\n").unwrap();
    rest.split_once("</textarea>").unwrap().0
}

fn checked(text: &str, facts: &str) -> Checked {
    Checked::new(text, facts, 1_790_000_000_000.0).unwrap()
}

/// The rules of the findings.
fn rules(checked: &Checked) -> Vec<&str> {
    checked.report.findings.iter().map(|located| located.finding.rule).collect()
}

fn repaired(checked: &Checked) -> String {
    let answer: Value = serde_json::from_str(&checked.repair()).unwrap();
    answer["repaired"].as_str().unwrap().to_owned()
}

#[test]
fn the_example_hangs_where_its_volume_is_attached() {
    for cluster in CLUSTERS {
        let checked = checked(example(), cluster.facts);
        let hangs = !["k3s", "one-node"].contains(&cluster.name);
        let expected = if hangs { vec![codes::ROLLING_UPDATE_OVERLAP] } else { Vec::new() };
        assert_eq!(rules(&checked), expected, "{}", cluster.name);
        let repaired = repaired(&checked);
        assert_eq!(repaired.contains("type: Recreate"), hangs, "{}", cluster.name);
        assert!(rules(&super::tests::checked(&repaired, cluster.facts)).is_empty());
    }
}

#[test]
fn every_class_of_a_cluster_is_of_a_driver_that_is_known() {
    let catalog = Catalog::embedded().unwrap();
    for cluster in CLUSTERS {
        let source = Source::at_hand(cluster.name, cluster.facts.to_owned());
        let read = read_objects(&[source], false);
        let (mut nodes, mut defaults) = (0, 0);
        for item in read.items {
            match item.object {
                Object::StorageClass(class) => {
                    assert!(catalog.get(&class.provisioner).is_some(), "{class:?}");
                    let key = "storageclass.kubernetes.io/is-default-class";
                    defaults += usize::from(class.metadata.annotations.get(key).is_some());
                }
                Object::Node(_) => nodes += 1,
                other => panic!("{}: {other:?}", cluster.name),
            }
        }
        assert!(read.errors.is_empty() && defaults == 1, "{}", cluster.name);
        assert_eq!(nodes == 1, cluster.name == "one-node");
    }
}

#[test]
fn the_runbook_has_what_is_linked() {
    let runbook = include_str!("../../../docs/runbook.md");
    for (rule, anchor) in RUNBOOK {
        assert!(codes::ALL.contains(&rule), "{rule}");
        let headings = runbook.lines().filter_map(|line| {
            let heading = line.strip_prefix("## ").or(line.strip_prefix("### "))?;
            Some(heading.to_lowercase().replace(' ', "-"))
        });
        assert!(headings.into_iter().any(|heading| heading == anchor), "{anchor}");
    }
}

#[test]
fn what_cannot_be_judged_is_said() {
    let template = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Values.name }}\n";
    let words = |text: &str, facts: &str| checked(text, facts).verdict();
    assert!(words(template, "").contains("helm template"));
    assert!(words("a: 1\n", "").contains("There is no workload"));
    let broken = words("apiVersion: v1\nkind: Pod\na: [\n", "");
    assert!(broken.contains("Could not be read") && !broken.contains("There is no"));
    for (facts, problem) in [("a: 1\n", "No facts were found here"), ("kind: [\n", FACTS)] {
        let refused = Checked::new(example(), facts, 0.0).map(|checked| checked.verdict());
        assert!(refused.is_err_and(|error| error.contains(problem)));
    }
    assert!(explain("Back-off pulling image").contains("\"known\":[]"));
    let line = "AttachVolume.Attach failed for volume \"pv-1\" : already attached to n1";
    assert!(explain(line).contains("kubectl get pv pv-1"));
}

/// Rules without such an example: one compares two versions of an object, and one is about live
/// nodes.
const WITHOUT_EXAMPLE: [&str; 2] = [codes::ACCESS_MODE_CHANGE, codes::FENCING_LIVE_NODE];

#[test]
fn the_example_of_each_rule_gives_the_rule() {
    let without: Vec<&str> = RULES
        .iter()
        .filter(|rule| {
            let documentation = rule.documentation();
            let (_, example) =
                documentation.split_once("# Example\n\n```yaml\n").unwrap_or_default();
            let (text, _) = example.split_once("```").unwrap_or_default();
            !rules(&checked(text, "")).contains(&rule.code)
        })
        .map(|rule| rule.code)
        .collect();
    assert_eq!(without, WITHOUT_EXAMPLE);
}

#[test]
fn an_abridged_manifest_is_judged_as_far_as_it_goes() {
    let abridged = example()
        .replace("  selector:\n    matchLabels: {app: web}\n", "")
        .replace("metadata:\n  name: web\n", "");
    let verdict = |text: &str| -> Value {
        serde_json::from_str(&checked(text, CLUSTERS[0].facts).verdict()).unwrap()
    };
    const SAID: &str = "Deployment (no name): metadata.name (line 11) and spec.selector (line 13) are missing, and the API server requires them.";
    let found = verdict(&abridged);
    let finding = &found["objects"][0]["findings"][0];
    assert_eq!(finding["severity"], "warning");
    assert!(finding["brief"].as_str().unwrap().contains("(unless the missing part changes it)"));
    // With nothing to find, the page still says that the object is incomplete.
    let clean = verdict(&abridged.replace("replicas: 1", "strategy: {type: Recreate}"));
    assert_eq!(clean["objects"], json!([]));
    for answer in [found, clean] {
        assert!(answer["incomplete"].as_str().unwrap().contains(SAID), "{answer}");
        assert!(answer["summary"].as_str().unwrap().contains("2 objects (1 incomplete)"));
    }
}

#[test]
fn windows_line_ends_stay() {
    let text = example().replace('\n', "\r\n");
    let checked = checked(&text, CLUSTERS[0].facts);
    assert_eq!(rules(&checked), [codes::ROLLING_UPDATE_OVERLAP]);
    let repaired = repaired(&checked);
    assert!(repaired.contains("type: Recreate\r\n"), "{repaired}");
}

#[test]
fn a_finding_is_drawn_when_it_is_opened() {
    let texts = ["a", "b"].map(|name| example().replace("web", name));
    let checked = checked(&texts.join("---\n"), CLUSTERS[0].facts);
    let verdict: Value = serde_json::from_str(&checked.verdict()).unwrap();
    let objects = verdict["objects"].as_array().unwrap();
    let names: Vec<_> = objects.iter().map(|object| object["object"].as_str().unwrap()).collect();
    assert_eq!(names, ["Deployment a", "Deployment b"]);
    assert!(!verdict.to_string().contains("<svg"));
    for (number, name) in names.iter().enumerate() {
        assert_eq!(objects[number]["findings"][0]["number"], number);
        let details = checked.details(number);
        assert!(details.contains("<svg") && details.contains(&format!("<p>{name}: ")), "{details}");
    }
    assert_eq!(checked.details(2), "");
}

#[test]
fn the_storage_table_has_every_part_of_the_catalog() {
    let contents: Value = serde_json::from_str(&contents()).unwrap();
    let rows = contents["storage"].as_array().unwrap();
    assert!(rows.len() > 150, "{}", rows.len());
    assert_eq!(contents["clusters"].as_array().unwrap().len(), CLUSTERS.len());
}
