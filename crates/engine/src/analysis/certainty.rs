//! The certainty of a finding.

use crate::model::words::words;

words! {
    /// The certainty of a finding, the surest first.
    Certainty {
        /// The objects at hand show it.
        Verified = "verified",
        /// The StorageClass is not in view, but distributions or drivers' installation documents
        /// create one with its name.
        Likely = "likely",
        /// Nothing is known about the storage, so it is assumed to be of the most common kind:
        /// attached to one node at a time.
        Assumed = "assumed",
    }
}
