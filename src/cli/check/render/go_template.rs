//! Evaluates templates of Go by Helm, which has the functions that Argo CD gives them.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::super::reason::Reason;
use super::Renderer;
use super::program::Failure;
use super::sandbox::Copy;
use manifest::delivery::value_of;

const CHART: &str = "{apiVersion: v2, name: templates, version: 0.0.0}";

/// Makes one object with the results. `normalize` is Argo CD's own function (`SanitizeName` in
/// its `applicationset/utils`).
const RESULTS: &str = r#"
{{- define "normalize" }}{{ regexReplaceAll "[^-a-z0-9.]" (. | toString | lower) "-" | trunc 253 | trimAll "-." }}{{ end }}
results:
{{- range .Values.calls }}
- {{ tpl .text (index $.Values.parameters (int .of)) | toJson }}
{{- end }}
"#;

/// How a template calls `normalize`, up to its name.
const CALLS: [&str; 7] = ["| ", "|", "{{ ", "{{", "{{- ", "(", "( "];

/// A text, and which of the parameters it is evaluated with.
pub(in crate::cli::check) type Call = (String, usize);

impl Renderer {
    /// The results of the calls, in their order.
    ///
    /// # Errors
    /// There is no helm, or one of the templates fails: the end of a sentence.
    pub(super) async fn go_templates(
        &self,
        calls: &[Call],
        parameters: &[&Value],
    ) -> Result<Vec<String>, Reason> {
        let copy = Copy::empty(&self.sandbox.folder).map_err(|it| it.to_string())?;
        let chart = copy.folder().join("templates");
        write(&chart, calls, parameters).map_err(|error| Failure::Copy(error).to_string())?;
        let text = self.helm_template("templates", &chart, &[], &copy).await;
        let text = text.map_err(
            |reason| match reason.text.split_once("error calling tpl: ") {
                Some((_, why)) => format!("its template fails: {why}").into(),
                None => reason,
            },
        )?;
        let results = value_of(&text).and_then(|mut it| it.get_mut("results").map(Value::take));
        let results = results.and_then(|it| serde_json::from_value(it).ok());
        results
            .filter(|it: &Vec<String>| it.len() == calls.len())
            .ok_or_else(|| "what helm makes of its template cannot be read".into())
    }
}

fn write(chart: &Path, calls: &[Call], parameters: &[&Value]) -> io::Result<()> {
    let calls = calls.iter().map(|(text, of)| {
        let calls_include = |text: String, before: &&str| {
            let (own, ours) = (
                format!("{before}normalize"),
                format!("{before}include \"normalize\""),
            );
            text.replace(&own, &ours)
        };
        let text = CALLS.iter().fold(text.clone(), calls_include);
        json!({ "text": text, "of": of })
    });
    let values = json!({ "calls": calls.collect::<Vec<_>>(), "parameters": parameters });
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(chart.join("Chart.yaml"), CHART)?;
    fs::write(chart.join("values.yaml"), values.to_string())?;
    fs::write(chart.join("templates/results.yaml"), RESULTS)
}
