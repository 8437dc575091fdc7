//! What a look-up answers.

/// An answer that never guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The object is there.
    Found(T),
    /// The object is not there.
    Absent,
    /// It is not known whether the object is there: not all objects of this
    /// kind have been heard of yet, or a live question got no answer.
    NotSynced,
}

/// Why a look-up found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The object is not there.
    Absent,
    /// It is not known whether the object is there.
    NotSynced,
}

impl<T> Lookup<T> {
    /// What becomes of the object, where it was found.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(object) => Lookup::Found(of(object)),
            Self::Absent => Lookup::Absent,
            Self::NotSynced => Lookup::NotSynced,
        }
    }

    /// The object, where it was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Absent | Self::NotSynced => None,
        }
    }

    /// The object, where it was found.
    ///
    /// # Errors
    /// Why it was not.
    pub fn known(self) -> Result<T, Absence> {
        match self {
            Self::Found(object) => Ok(object),
            Self::Absent => Err(Absence::Absent),
            Self::NotSynced => Err(Absence::NotSynced),
        }
    }
}
