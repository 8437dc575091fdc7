//! Editors that are installed, with the settings of `docs/editors.md`.
