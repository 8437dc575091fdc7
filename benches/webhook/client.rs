//! The load: one client with several concurrent reviews.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::process::ServerProcess;
use crate::shared::reviews::Sample;

/// The number of concurrent reviews.
const AT_ONCE: usize = 8;

#[derive(Clone, Copy)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2  ",
        })
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(crate) fn new(server: &ServerProcess, protocol: Protocol) -> Result<Self, Box<dyn Error>> {
        let ca = reqwest::Certificate::from_pem(&std::fs::read(&server.ca)?)?;
        let builder = reqwest::Client::builder().tls_certs_only([ca]);
        let http = match protocol {
            Protocol::Http1 => builder.http1_only().build()?,
            Protocol::Http2 => builder.build()?,
        };
        Ok(Self { http, url: format!("https://{}/validate?timeout=10s", server.address) })
    }

    async fn post(&self, sample: &Sample) -> Result<(), reqwest::Error> {
        self.http
            .post(&self.url)
            .header("content-type", "application/json")
            .body(sample.body.clone())
            .send()
            .await?
            .error_for_status()?
            .bytes()
            .await?;
        Ok(())
    }

    /// Sends `count` reviews as fast as they are answered, and returns the total time.
    pub(crate) async fn saturate(
        &self,
        sample: &Sample,
        count: usize,
    ) -> Result<Duration, reqwest::Error> {
        let started = Instant::now();
        let workers = (0..AT_ONCE).map(|_| async {
            for _ in 0..count / AT_ONCE {
                self.post(sample).await?;
            }
            Ok(())
        });
        join_all(workers).await.into_iter().collect::<Result<(), _>>()?;
        Ok(started.elapsed())
    }

    /// Sends a review every `pause`, without waiting for earlier answers. Returns the time of each
    /// from the moment when it was due.
    pub(crate) async fn at_pace(
        &self,
        sample: &Sample,
        count: usize,
        pause: Duration,
    ) -> Result<Vec<Duration>, Box<dyn Error>> {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        let sample = Arc::new(sample.clone());
        let mut due = Instant::now();
        let mut under_way = Vec::with_capacity(count);
        for _ in 0..count {
            due += pause;
            // A timer's resolution is a millisecond, which is coarser than the pauses.
            while Instant::now() < due {
                yield_now().await;
            }
            let (client, sample, slots) = (self.clone(), Arc::clone(&sample), Arc::clone(&slots));
            under_way.push(tokio::spawn(async move {
                let _slot = slots.acquire_owned().await;
                client.post(&sample).await.map(|()| due.elapsed())
            }));
        }
        let mut latencies = Vec::with_capacity(count);
        for answer in under_way {
            latencies.push(answer.await??);
        }
        Ok(latencies)
    }
}
