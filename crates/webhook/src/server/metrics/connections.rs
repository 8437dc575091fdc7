//! Connections to the webhook port.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Held, metric};

/// Connections to the webhook port. Clones share their values.
#[derive(Clone, Debug)]
pub(in crate::server) struct ConnectionMetrics {
    open: Gauge,
    refused: Counter,
    displaced: Counter,
    handshake_failures: Counter,
}

impl ConnectionMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            open: metric(
                registry,
                "connections",
                "Open connections to the webhook port",
            ),
            refused: metric(
                registry,
                "connections_refused",
                "Connections closed at once because too many were open",
            ),
            displaced: metric(
                registry,
                "connections_displaced",
                "Quiet connections ended to make room for new ones",
            ),
            handshake_failures: metric(
                registry,
                "tls_handshake_failures",
                "TLS handshakes that failed; a wrong caBundle shows here",
            ),
        }
    }

    /// Counts a connection as open until the guard is dropped.
    pub(in crate::server) fn opened(&self) -> Held {
        Held::new(&self.open)
    }

    pub(in crate::server) fn refused(&self) {
        self.refused.inc();
    }

    pub(in crate::server) fn displaced(&self) {
        self.displaced.inc();
    }

    pub(in crate::server) fn handshake_failed(&self) {
        self.handshake_failures.inc();
    }
}
