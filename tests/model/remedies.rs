//! The remedies, put into configurations, and what each promises.

use crate::configuration::{Access, Affinity, Configuration, Kind, Strategy};
use crate::explore::Outcome;

/// A remedy for a Deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remedy {
    Recreate,
    ZeroSurge,
    Colocate,
}

pub(crate) const REMEDIES: [Remedy; 3] = [Remedy::Recreate, Remedy::ZeroSurge, Remedy::Colocate];

impl Remedy {
    /// Whether the remedy promises anything for the first workload of this configuration.
    pub(crate) fn applies(self, configuration: &Configuration) -> bool {
        let workload = &configuration.workloads[0];
        let unhindered = !workload.anti_affinity
            && workload.hostname_spread.is_none()
            && workload.zone_spread.is_none();
        matches!(workload.kind, Kind::Deployment(_))
            && match self {
                Self::Recreate | Self::ZeroSurge => workload.replicas <= 1,
                Self::Colocate => configuration.volume.access == Access::Exclusive && unhindered,
            }
    }

    /// The configuration with the remedy in its first workload.
    pub(crate) fn applied(self, configuration: &Configuration) -> Configuration {
        let mut remedied = configuration.clone();
        let workload = &mut remedied.workloads[0];
        match self {
            Self::Recreate => workload.kind = Kind::Deployment(Strategy::Recreate),
            Self::ZeroSurge => workload.kind = Kind::Deployment(Strategy::rolling(0, 1)),
            Self::Colocate => {
                workload.affinity = Affinity::Required {
                    workloads: 0b01,
                    own_revision: false,
                }
            }
        }
        remedied
    }

    /// The worst outcome that is left.
    pub(crate) fn promise(self, configuration: &Configuration) -> Outcome {
        match self {
            Self::ZeroSurge if configuration.volume.access == Access::Exclusive => Outcome::Delay,
            Self::Recreate | Self::ZeroSurge | Self::Colocate => Outcome::None,
        }
    }

    /// Whether the remedy leaves the pod template as it is, so that it also ends a rollout that hangs.
    pub(crate) fn keeps_template(self) -> bool {
        matches!(self, Self::Recreate | Self::ZeroSurge)
    }
}
