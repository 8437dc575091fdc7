//! How sure a finding is.

use crate::model::words::words;

words! {
    /// How sure a finding is, the surest first.
    Certainty {
        /// The objects at hand show it.
        Verified = "verified",
        /// A StorageClass is not at hand, but has a name that distributions or
        /// drivers' installation documents create.
        Likely = "likely",
        /// Nothing is known of the storage, so it is taken for the most common kind:
        /// attached to one node at a time.
        Assumed = "assumed",
    }
}
