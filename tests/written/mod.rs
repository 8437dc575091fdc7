//! Deployments in many styles of YAML, for tests of code that edits them.

use proptest::prelude::*;
use proptest::sample::select;

/// A Deployment in one style.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// The name of the Deployment.
    pub(crate) name: String,
    /// Its number of pods.
    pub(crate) replicas: usize,
    indent: usize,
    compact: bool,
    comments: bool,
    crlf: bool,
    final_newline: bool,
    strategy: &'static str,
    scalar: &'static str,
    affinity: &'static str,
    order: [usize; 4],
}

const STRATEGIES: &[&str] = &[
    "",
    "strategy: {}",
    "strategy:",
    "strategy: ~",
    "strategy: {type: RollingUpdate}",
    "strategy: {\"rollingUpdate\": {maxSurge: 1, maxUnavailable: 0}, type: 'RollingUpdate'}",
    "strategy:\n>type: RollingUpdate",
    "strategy:\n>rollingUpdate:\n>>maxSurge: 25%\n>>maxUnavailable: 25%\n>type: \"RollingUpdate\"",
    "strategy:\n>type: RollingUpdate\n>rollingUpdate: {maxSurge: 0o1}",
];

const SCALARS: &[&str] = &[
    "0755",
    "yes",
    "123456789012345678901234567890",
    "2024-02-29",
    "|\n>>x: y\n\n>># no comment",
    "'it''s'",
    "\"a\\tb # c\"",
    "!!str 0755",
];

const AFFINITIES: &[&str] = &["", "affinity: {}", "affinity:\n>nodeAffinity: {}"];

impl Written {
    /// The manifest. Its pods use the claim `NAME-data`.
    pub(crate) fn text(&self) -> String {
        let step = " ".repeat(self.indent);
        let dash = if self.compact { "" } else { &step };
        let comment = |text: &str| {
            if self.comments { format!("  # {text}") } else { String::new() }
        };
        let block = |text: &str, level: usize| -> String {
            text.lines()
                .map(|line| {
                    let deeper = line.chars().take_while(|c| *c == '>').count();
                    let line = &line[deeper..];
                    if line.is_empty() {
                        return "\n".to_owned();
                    }
                    format!("{}{line}\n", step.repeat(level + deeper))
                })
                .collect()
        };
        let template = format!(
            "{step}template:{}\n{}{step}{step}metadata: {{labels: {{app: {}}}}}\n{step}{step}spec:\n{step}{step}{step}containers:\n{step}{step}{step}{dash}- name: app\n{step}{step}{step}{dash}  image: app{}\n{step}{step}{step}{dash}  volumeMounts: [{{name: data, mountPath: /data}}]\n{step}{step}{step}volumes: [{{name: data, persistentVolumeClaim: {{claimName: {}-data}}}}]\n",
            comment("the pods"),
            if self.comments { "\n# far left\n" } else { "" },
            self.name,
            comment("latest"),
            self.name,
        );
        let affinity = block(self.affinity, 3);
        let parts = [
            format!("{step}replicas: {}{}\n", self.replicas, comment("not more")),
            block(self.strategy, 1),
            format!("{template}{affinity}"),
            format!("{step}selector: {{matchLabels: {{app: {}}}}}\n", self.name),
        ];
        let spec: String = self.order.iter().map(|at| parts[*at].as_str()).collect();
        let odd = block(&format!("odd: {}", self.scalar), 2);
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n{step}name: {}\n{step}annotations:\n{odd}spec:{}\n{spec}",
            self.name,
            comment("what is wanted"),
        );
        if !self.final_newline {
            text.truncate(text.trim_end().len());
        }
        if self.crlf {
            text = text.replace('\n', "\r\n");
        }
        text
    }
}

/// Any style.
pub(crate) fn written() -> impl Strategy<Value = Written> {
    let flags = any::<[bool; 4]>();
    let texts = (select(STRATEGIES), select(SCALARS), select(AFFINITIES));
    let order = Just([0, 1, 2, 3_usize]).prop_shuffle();
    (1..=5usize, flags, texts, order).prop_map(|(indent, flags, texts, order)| {
        let [compact, comments, crlf, final_newline] = flags;
        let (strategy, scalar, affinity) = texts;
        Written {
            name: "web".to_owned(),
            replicas: 1,
            indent,
            compact,
            comments,
            crlf,
            final_newline,
            strategy,
            scalar,
            affinity,
            order,
        }
    })
}
