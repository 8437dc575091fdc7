//! The project's server with reviewers that have no facts.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;
use webhook::admission::{Answer, Decision, Endpoint, MalformedReview, Operation};
use webhook::server::{Metrics, Options, Reviewer, Server};
use webhook_certs::{Certificates, SelfSigned};

use crate::shared::reviews::skim;

/// The replacement for the decision.
#[derive(Clone, Copy)]
pub(crate) enum StandIn {
    /// Gives the same answer to every review, without reading the body.
    Constant,
    /// Gives an answer with the uid, and reads nothing else.
    Skim,
}

const ROLE: &str = "--stand-in";

impl StandIn {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Skim => "uid only",
        }
    }

    /// The arguments with which this program becomes the stand-in.
    pub(crate) fn arguments(self, ca: &Path) -> Vec<String> {
        vec![ROLE.to_owned(), self.name().to_owned(), ca.display().to_string()]
    }

    pub(crate) fn from_arguments(arguments: &[String]) -> Option<(Self, String)> {
        let [_, role, name, ca] = arguments else {
            return None;
        };
        let stand_in =
            [Self::Constant, Self::Skim].into_iter().find(|stand_in| stand_in.name() == name)?;
        (role == ROLE).then(|| (stand_in, ca.clone()))
    }
}

/// Serves as the program does, until it is killed.
pub(crate) fn serve(stand_in: StandIn, ca: &str) -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).json().flatten_event(true).init();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let made = SelfSigned::generate(&[], Timestamp::now())?;
        std::fs::write(ca, &made.ca_pem)?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::start(
            &Options::new(any, any),
            Arc::new(Certificates::new(made.pair)),
            stand_in,
            Vec::new(),
            Metrics::new(&["Deployment"]),
        )
        .await?;
        server.run().await?;
        Ok(())
    })
}

impl Reviewer for StandIn {
    async fn review(
        &self,
        _: Endpoint,
        body: &[u8],
        _: Option<IpAddr>,
        _: Instant,
    ) -> Result<Answer, MalformedReview> {
        const ANSWER: &[u8] = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}"#;
        Ok(Answer {
            body: match self {
                Self::Constant => ANSWER.to_vec(),
                Self::Skim => skim(body),
            },
            kind: "Deployment",
            operation: Operation::Update,
            dry_run: false,
            decision: Decision::Allowed,
            findings: Vec::new(),
            too_complex: false,
        })
    }
}
