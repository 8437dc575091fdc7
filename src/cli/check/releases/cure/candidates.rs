//! Values that charts may read for what a finding is about.

use serde_json::{Value, json};

use engine::rules::codes;

/// The most values of one chart that are looked through, and how deep.
const MAX_VALUES: usize = 20_000;
const MAX_DEPTH: usize = 6;

/// What a value decides about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Strategy,
    AccessMode,
    Replicas,
}

impl Kind {
    pub(super) fn of(rule: &str) -> Option<Self> {
        Some(match rule {
            codes::ROLLING_UPDATE_OVERLAP | codes::SINGLE_POD_VOLUME => Self::Strategy,
            codes::LEFTOVER_ROLLING_UPDATE => Self::Strategy,
            codes::UNSUPPORTED_ACCESS_MODE => Self::AccessMode,
            codes::REPLICAS_SHARE_VOLUME => Self::Replicas,
            _ => return None,
        })
    }

    /// Names that charts give to such values.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Strategy => &[
                "strategy",
                "updateStrategy",
                "deploymentStrategy",
                "strategyType",
                "deploymentStrategyType",
                "updateStrategyType",
            ],
            Self::AccessMode => &["accessMode", "accessModes"],
            Self::Replicas => &["replicaCount", "replicas"],
        }
    }

    /// The values to try under a key that has this value.
    fn values(self, there: Option<&Value>) -> Vec<Value> {
        let texts = |text: &str| match there {
            Some(Value::Array(_)) => vec![json!([text])],
            Some(Value::String(_)) => vec![json!(text)],
            _ => vec![json!(text), json!([text])],
        };
        match self {
            Self::Strategy => {
                let kind = || json!({"type": "Recreate"});
                let whole = || json!({"type": "Recreate", "rollingUpdate": null});
                match there {
                    Some(Value::String(_)) => vec![json!("Recreate")],
                    Some(Value::Object(_)) => vec![kind(), whole()],
                    _ => vec![kind(), json!("Recreate")],
                }
            }
            Self::AccessMode => texts("ReadWriteOnce"),
            Self::Replicas => vec![json!(1)],
        }
    }
}

/// Keys next to which a chart may read one that its values do not name.
const BESIDE: [&str; 6] = [
    "replicas",
    "replicaCount",
    "containers",
    "image",
    "persistence",
    "accessMode",
];

/// Paths in the values of a chart, and what may be set there: what is there first.
pub(super) fn candidates(values: &Value, kind: Kind) -> Vec<(Vec<String>, Value)> {
    let (mut named, mut unnamed) = (Vec::new(), Vec::new());
    let mut waiting = vec![(Vec::new(), values)];
    let mut seen = 0;
    while let Some((path, value)) = waiting.pop() {
        let Some(entries) = value.as_object() else {
            continue;
        };
        seen += entries.len();
        if seen > MAX_VALUES {
            break;
        }
        let is_beside = path.is_empty() || BESIDE.iter().any(|key| entries.contains_key(*key));
        for key in kind.keys() {
            let there = entries.get(*key);
            let into = match there {
                Some(_) => &mut named,
                None if is_beside => &mut unnamed,
                None => continue,
            };
            let mut path: Vec<String> = path.clone();
            path.push((*key).to_owned());
            let values = kind.values(there.filter(|it| !it.is_null()));
            into.extend(values.into_iter().map(|value| (path.clone(), value)));
        }
        if path.len() < MAX_DEPTH {
            for (key, value) in entries.iter().rev() {
                let mut path = path.clone();
                path.push(key.clone());
                waiting.push((path, value));
            }
        }
    }
    // The nearest to the top first.
    let depth = |it: &(Vec<String>, Value)| it.0.len();
    named.sort_by_key(depth);
    unnamed.sort_by_key(depth);
    named.extend(unnamed);
    named
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Kind, candidates};

    #[test]
    fn what_the_values_name_is_tried_first() {
        let values = json!({"server": {"replicas": 1, "updateStrategy": {"type": "RollingUpdate"}}, "x": {"strategy": "a"}});
        let tried: Vec<String> = candidates(&values, Kind::Strategy)
            .into_iter()
            .take(4)
            .map(|(path, value)| format!("{}={value}", path.join(".")))
            .collect();
        assert_eq!(
            tried,
            [
                r#"server.updateStrategy={"type":"Recreate"}"#,
                r#"server.updateStrategy={"type":"Recreate","rollingUpdate":null}"#,
                r#"x.strategy="Recreate""#,
                r#"strategy={"type":"Recreate"}"#,
            ]
        );
    }
}
