//! The origin of a release, for `check`.

use std::path::PathBuf;

use super::{Chart, Release};
use crate::fetch::Remote;
use crate::reason::without_user;
use crate::rendering::dependencies;
use crate::rendering::roots::{Places, RootKind, holds};
use crate::repository::Repository;
use check::Files as _;
use check::text::{self, Renderer};

impl Release {
    /// The data that `check` needs about the release.
    pub(crate) fn origin(&self, places: Places<'_>) -> text::Release {
        let owner = &self.owner;
        let folder = self.chart.folder_on_disk();
        let elsewhere = folder.and_then(|it| places.fetcher.shown(it));
        text::Release {
            owner: owner.reference.clone(),
            place: owner.place.clone(),
            template: owner.template.clone(),
            field: self.field.clone(),
            held_by: vec![owner.place.source],
            namespace: self.settings.namespace.clone(),
            renderer: match &self.chart {
                Chart::Kustomization(_, fields) => {
                    Renderer::Kustomize(fields.values().map(ToString::to_string).collect())
                }
                Chart::Manifests(..) => Renderer::Nothing,
                Chart::Folder(_) | Chart::Remote(_) => Renderer::Helm,
            },
            rendered_from: match elsewhere {
                Some(name) => without_user(&name.display().to_string()),
                None => self.chart.shown(places.repository),
            },
            unknown: self.unknown.first().map(|it| without_user(it)),
        }
    }
}

impl Chart {
    /// Its name as shown in messages.
    fn shown(&self, repository: &Repository) -> String {
        match self {
            Self::Remote(remote) => without_user(&remote.to_string()),
            Self::Folder(folder) | Self::Kustomization(folder, _) | Self::Manifests(folder, _) => {
                repository.path_of(folder)
            }
        }
    }

    /// Whether Helm renders it, with values.
    pub(super) const fn is_helm(&self) -> bool {
        matches!(self, Self::Folder(_) | Self::Remote(_))
    }

    /// Whether it is a generated kustomization of all manifests in its folder, which contains none.
    pub(crate) fn is_generated(&self) -> bool {
        matches!(self, Self::Kustomization(folder, _) if !holds(folder, RootKind::Kustomization))
    }

    /// The folder from which it is rendered, without the additions of a release.
    pub(crate) const fn folder(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(folder) | Self::Kustomization(folder, _) => Some(folder),
            Self::Manifests(..) | Self::Remote(_) => None,
        }
    }

    /// The folder on this machine that contains it.
    const fn folder_on_disk(&self) -> Option<&PathBuf> {
        match self {
            Self::Manifests(folder, _) => Some(folder),
            _ => self.folder(),
        }
    }

    /// The resources that must be fetched for it.
    pub(super) fn remotes(&self) -> Vec<Remote> {
        match self {
            Self::Remote(remote) => vec![remote.clone()],
            Self::Folder(folder) => dependencies::remote(folder),
            Self::Kustomization(..) | Self::Manifests(..) => Vec::new(),
        }
    }
}
