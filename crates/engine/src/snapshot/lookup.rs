//! The result of a look-up.

/// The result of a look-up, which distinguishes absent objects from unknown ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The object exists.
    Found(T),
    /// The object does not exist.
    Absent,
    /// It is not known whether the object exists: its kind is not synced yet, or the API server
    /// did not respond.
    NotSynced,
}

/// The reason for which a look-up found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The object does not exist.
    Absent,
    /// It is not known whether the object exists.
    NotSynced,
}

impl<T> Lookup<T> {
    /// The result of a look-up that found `found`; `is_complete` says whether all objects of the
    /// kind are known.
    pub fn of(found: Option<T>, is_complete: bool) -> Self {
        match (found, is_complete) {
            (Some(object), _) => Self::Found(object),
            (None, true) => Self::Absent,
            (None, false) => Self::NotSynced,
        }
    }

    /// Applies `of` to the object, if it was found.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(object) => Lookup::Found(of(object)),
            Self::Absent => Lookup::Absent,
            Self::NotSynced => Lookup::NotSynced,
        }
    }

    /// The object, if it was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Absent | Self::NotSynced => None,
        }
    }

    /// The object.
    ///
    /// # Errors
    /// The reason for which it was not found.
    pub fn known(self) -> Result<T, Absence> {
        match self {
            Self::Found(object) => Ok(object),
            Self::Absent => Err(Absence::Absent),
            Self::NotSynced => Err(Absence::NotSynced),
        }
    }
}
