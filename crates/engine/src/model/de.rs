//! Deserializes fields as Kubernetes does: `null` is the same as absent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Text;

/// The most characters in the name of an object.
pub(super) const LONGEST_NAME: usize = 253;

/// Reads `T`, or its default for `null`.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Calls `each` with every entry of a list and keeps none; `null` has no entries. `what` describes
/// the list.
pub(super) fn for_each<'de, D, T>(
    deserializer: D,
    what: &'static str,
    each: impl FnMut(T),
) -> Result<(), D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Each<F, T>(&'static str, F, PhantomData<T>);

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<F, T> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_none<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_seq(self)
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
            while let Some(()) = seq.next_element_seed(&mut self)? {}
            Ok(())
        }
    }

    impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for &mut Each<F, T> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            (self.1)(T::deserialize(deserializer)?);
            Ok(())
        }
    }

    deserializer.deserialize_option(Each(what, each, PhantomData))
}

/// Reads the name of an object; empty for `null`. A text that is too long is cut to an invalid
/// name, as messages repeat names.
pub fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    at_most::<D, { LONGEST_NAME + 1 }>(deserializer)
}

/// Reads a name as `name` does; `None` for `null`, which differs from an empty name.
pub(crate) fn some_name<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Text>, D::Error> {
    let name = Option::<Borrowed<'_>>::deserialize(d)?;
    Ok(name.map(|Borrowed(name)| first(&name, LONGEST_NAME + 1)))
}

/// Reads at most `BYTES` of a text; empty for `null`.
pub fn at_most<'de, D: Deserializer<'de>, const BYTES: usize>(
    deserializer: D,
) -> Result<Text, D::Error> {
    let text = Option::<Borrowed<'_>>::deserialize(deserializer)?;
    Ok(text.map_or_else(Text::default, |Borrowed(text)| first(&text, BYTES)))
}

/// A list entry whose name is the only field that is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: Text,
}

/// A text that is read but not kept.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Borrowed<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// At most `bytes` of the text, without cutting a character.
fn first(text: &str, bytes: usize) -> Text {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}
