//! The facts that one judgement adds to those of the cluster.

use super::batch::Order;
use super::live_lookups::LiveLookups;
use super::place::Place;
use crate::model::Text;

/// The facts of one judgement in addition to the snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlay<'a> {
    /// The objects that take precedence over those of the cluster.
    pub nearer: Option<&'a dyn Place>,
    /// The look-ups that the API server answered for this judgement, which adds further ones.
    pub lookups: Option<&'a LiveLookups>,
    /// The order in which the objects of a batch are judged, and the position of the current
    /// one.
    pub batch: Option<(&'a dyn Order, usize)>,
    /// Whether the cluster may have more objects, as when files represent it.
    pub partial: bool,
    /// The names of classes that are created by something that is not in view.
    pub made_classes: &'a [Text],
    /// Whether the default class, which is not in view, may attach nothing.
    pub default_in_doubt: bool,
    /// Whether the objects come from files, which no API server has read.
    pub files: bool,
}

impl Overlay<'_> {
    /// No further facts.
    pub const NOTHING: Self = Self {
        nearer: None,
        lookups: None,
        batch: None,
        partial: false,
        made_classes: &[],
        default_in_doubt: false,
        files: false,
    };
}
