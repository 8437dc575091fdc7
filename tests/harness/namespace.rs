//! A namespace that a test has for itself.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use super::control_plane::ControlPlane;
use super::kubectl::Output;

/// A namespace that nobody else uses (see [`ControlPlane::namespace`]). It dereferences to its
/// name.
pub(crate) struct Namespace<'p> {
    pub(crate) plane: &'p ControlPlane,
    name: String,
}

impl<'p> Namespace<'p> {
    pub(crate) fn new(plane: &'p ControlPlane, prefix: &str) -> Self {
        let name = plane.namespace(prefix);
        Self { plane, name }
    }

    /// Runs kubectl in the namespace.
    pub(crate) fn kubectl(&self, arguments: &[&str], stdin: Option<&str>) -> Output {
        let arguments = [arguments, &["--namespace", &self.name]].concat();
        self.plane.kubectl(&arguments, stdin)
    }

    /// Applies an object.
    ///
    /// # Errors
    ///
    /// kubectl's output.
    pub(crate) fn apply(&self, object: &Value) -> Result<(), String> {
        let apply = ["apply", "-f", "-"];
        self.kubectl(&apply, Some(&object.to_string())).done()
    }

    /// The objects of a kind.
    ///
    /// # Errors
    ///
    /// kubectl's output.
    pub(crate) fn list(&self, kind: &str) -> Result<Vec<Value>, String> {
        let output = self.kubectl(&["get", kind, "-o=json"], None);
        output.done()?;
        let list: Value =
            serde_json::from_str(&output.stdout).map_err(|error| error.to_string())?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }
}

impl Deref for Namespace<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Namespace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
