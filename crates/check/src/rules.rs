//! The rules that find something about each object, to compare two outputs of one chart.

use std::collections::{BTreeSet, HashMap};

use super::files::Files;
use super::ids::TextId;
use super::parse::{Parsed, parse};
use engine::model::object::ObjectRef;
use engine::verdict::EffectivePolicy;
use manifest::source::Source;
use report::{Format, Place};

/// The rules that find something about each object.
pub type Rules = HashMap<ObjectRef, BTreeSet<&'static str>>;

impl Parsed {
    /// The rules that find something about the objects, or about those of one text.
    pub fn rules(
        &self,
        of_text: Option<usize>,
        effective: &EffectivePolicy,
        files: &dyn Files,
    ) -> Rules {
        let is_wanted = |text: TextId| of_text.is_none_or(|number| text.0 == number);
        let judged = self.objects().filter(|(_, known)| is_wanted(TextId::of(known)));
        let mut rules: Rules =
            judged.map(|(_, known)| (known.reference.clone(), BTreeSet::new())).collect();
        let only = of_text.map(|number| &self.reading.texts[number]);
        let wanted = |text: &_, _: &ObjectRef| only.is_none_or(|only| std::ptr::eq(only, text));
        let report = self.report(wanted, effective, files, Format::Json);
        for (_, located) in report.reported() {
            let also = located.also.iter().map(|(object, _)| object);
            for object in std::iter::once(&located.finding.object).chain(also) {
                rules.entry(object.clone()).or_default().insert(located.finding.rule);
            }
        }
        rules
    }

    /// The number of the text that a release renders and that has the object, and the place of the
    /// values of that release, as words. `place` is that of a finding about the object.
    pub fn release_of(&self, object: &ObjectRef, place: &Place) -> Option<(usize, String)> {
        let mut named = self.objects().filter(|(_, known)| known.reference == *object);
        named.find_map(|(_, known)| {
            let release = self.text(known).release()?;
            let holder = &self.reading.texts[release.place.source].source.name;
            let file = release.template.as_deref().unwrap_or(holder);
            let is_it =
                place.file == file && place.template.as_deref() == Some(&*release.rendered_from);
            let field = if release.field == "spec" { "the values" } else { &release.field };
            is_it.then(|| (known.place.source, format!("{field} of {}", release.owner)))
        })
    }

    /// The rules that find something about the objects of the text with this number, if a release
    /// renders `output` instead of it.
    pub fn rules_with(
        &mut self,
        number: usize,
        output: String,
        effective: &EffectivePolicy,
        files: &dyn Files,
    ) -> Rules {
        let before = self.reading.texts[number].source.clone();
        self.read_again(number, Source::rendered(&before.name, output), files);
        let rules = self.rules(Some(number), effective, files);
        self.read_again(number, before, files);
        rules
    }

    fn read_again(&mut self, number: usize, source: Source, files: &dyn Files) {
        let mut reading = std::mem::take(&mut self.reading);
        reading.read_again(number, source, files);
        *self = parse(reading, std::mem::take(&mut self.facts), self.now);
    }
}
