//! The program's proposals against a fault, read from its output.

use serde_json::Value;

use crate::harness::Output;
use crate::ways::Applier;

/// The results of `check` on a file: the repaired file and a printed command.
pub(crate) struct Printed {
    /// The file after `check --fix`.
    pub(crate) fixed: Value,
    /// The command that must run first if the API server refuses Recreate.
    pub(crate) once: Option<String>,
}

impl Printed {
    /// Lets `check` repair a file with the manifest.
    pub(crate) fn of_file(
        applier: &Applier<'_>,
        remedy: &str,
        manifest: &Value,
    ) -> Result<Self, String> {
        let file = applier.file(manifest);
        let findings = findings(&applier.guard(&["check", "--cluster", "--format=json", &file]))?;
        let with = format!("--remedy={remedy}");
        let fix = ["check", "--cluster", &with, "--fix", "--exit-zero", &file];
        let said = applier.guard(&fix);
        said.done()?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let fixed = serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
        if fixed == *manifest {
            Err(format!("The file was not fixed: {said:#?}"))
        } else {
            Ok(Self { fixed, once: findings.iter().find_map(command) })
        }
    }
}

/// The findings of `audit` about the live Deployment.
pub(crate) struct Audited(Vec<Value>);

impl Audited {
    pub(crate) fn of(applier: &Applier<'_>) -> Result<Self, String> {
        let audit = ["audit", "-n", &applier.namespace, "--format=json"];
        Ok(Self(findings(&applier.guard(&audit))?))
    }

    /// The remedies of the findings, the best one first.
    pub(crate) fn remedies(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter_map(|finding| finding["remedies"].as_array()).flatten()
    }

    /// The JSON patch of a remedy.
    pub(crate) fn patch(&self, remedy: &str) -> Result<&Value, String> {
        self.remedies()
            .find(|offered| offered["name"] == remedy)
            .map(|offered| &offered["patch"])
            .ok_or_else(|| format!("audit offers no {remedy}: {:#?}", self.0))
    }

    /// The command that must run first if the API server refuses Recreate.
    pub(crate) fn once(&self) -> Option<String> {
        self.0.iter().find_map(command)
    }
}

fn findings(output: &Output) -> Result<Vec<Value>, String> {
    let report: Value = serde_json::from_str(&output.stdout).map_err(|_| format!("{output:#?}"))?;
    let findings = report["findings"].as_array().cloned();
    findings.ok_or_else(|| format!("{output:#?}"))
}

/// The patch command that a finding's message prints.
fn command(finding: &Value) -> Option<String> {
    let mut quoted = finding["message"].as_str()?.split('`').skip(1).step_by(2);
    quoted
        .find(|text| text.starts_with("kubectl ") && text.contains(" patch "))
        .map(ToOwned::to_owned)
}
