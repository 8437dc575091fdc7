//! The origin of a release, for `check`.

use std::path::PathBuf;

use super::{Chart, Release};
use crate::fetch::Remote;
use crate::reason::without_user;
use crate::rendering::dependencies;
use crate::rendering::roots::{Places, RootKind};
use check::Files as _;
use check::text::{self, Renderer};

impl Release {
    /// The data that `check` needs about the release.
    pub(crate) fn origin(&self, places: Places<'_>) -> text::Release {
        let owner = &self.owner;
        text::Release {
            owner: owner.reference.clone(),
            place: owner.place.clone(),
            template: owner.template.clone(),
            field: self.field.clone(),
            held_by: vec![owner.place.source],
            namespace: self.settings.namespace.clone(),
            renderer: match &self.chart {
                Chart::Kustomization(_) => Renderer::Kustomize(
                    self.settings.fields.values().map(ToString::to_string).collect(),
                ),
                Chart::Manifests(..) => Renderer::Nothing,
                Chart::Folder(_) | Chart::Remote(_) => Renderer::Helm,
            },
            rendered_from: self.chart.display_name(places),
            unknown: self.unknown.first().map(|source| without_user(source)),
        }
    }
}

impl Chart {
    /// Its name as shown in messages.
    fn display_name(&self, places: Places<'_>) -> String {
        match self {
            Self::Remote(remote) => without_user(&remote.to_string()),
            Self::Folder(folder) | Self::Kustomization(folder) | Self::Manifests(folder, _) => {
                match places.fetcher.display_name(folder) {
                    Some(name) => without_user(&name.display().to_string()),
                    None => places.repository.path_of(folder),
                }
            }
        }
    }

    /// Whether Helm renders it, with values.
    pub(crate) const fn is_helm(&self) -> bool {
        matches!(self, Self::Folder(_) | Self::Remote(_))
    }

    /// Whether it is a generated kustomization of all manifests in its folder, which contains none.
    pub(crate) fn is_generated(&self) -> bool {
        let kind = RootKind::Kustomization;
        matches!(self, Self::Kustomization(folder) if kind.file_in(folder).is_none())
    }

    /// The folder from which it is rendered, without the additions of a release.
    pub(crate) const fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(folder) | Self::Kustomization(folder) => Some(folder),
            Self::Manifests(..) | Self::Remote(_) => None,
        }
    }

    /// The resources that must be fetched for it.
    pub(super) fn remotes(&self) -> Vec<Remote> {
        match self {
            Self::Remote(remote) => vec![remote.clone()],
            Self::Folder(folder) => dependencies::remote(folder),
            Self::Kustomization(_) | Self::Manifests(..) => Vec::new(),
        }
    }
}
