//! The numbers by which the stages name objects and texts.

use super::parse::Parsed;
use super::text::Text;
use manifest::objects::Item;
use manifest::position::Lines;

/// The number of an object, in the order of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId(pub(super) usize);

/// The number of a text, which stands for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TextId(pub(super) usize);

impl TextId {
    /// The text that contains the object.
    pub(super) const fn of(known: &Item) -> Self {
        Self(known.place.source)
    }
}

impl Parsed {
    pub(super) fn objects(&self) -> impl Iterator<Item = (ObjectId, &Item)> {
        self.reading.objects.iter().enumerate().map(|(number, known)| (ObjectId(number), known))
    }

    pub(super) fn object(&self, id: ObjectId) -> &Item {
        &self.reading.objects[id.0]
    }

    pub(super) fn text_of(&self, id: ObjectId) -> TextId {
        TextId::of(self.object(id))
    }

    /// The file that contains the object, with its line unless the file was rendered.
    pub(super) fn place_of(&self, id: ObjectId) -> String {
        let known = self.object(id);
        let origin = self.text(known);
        let name = &origin.source.name;
        match origin.source.text() {
            Ok(text) if !origin.is_rendered() => {
                let (line, _) = Lines::of(&text).line_and_column(known.start);
                format!("{name}:{line}")
            }
            _ => name.clone(),
        }
    }

    /// The text that contains the object.
    pub(super) fn text(&self, known: &Item) -> &Text {
        &self.reading.texts[known.place.source]
    }
}
