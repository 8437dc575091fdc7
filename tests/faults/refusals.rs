//! A request is refused while its body is still coming. Asked by the real curl, which
//! gives up where an HTTP/2 stream is reset before the answer has arrived.

use std::process::Command;
use std::time::Instant;

use crate::Played;
use crate::harness::{self, GuardOptions};
use crate::load::{Came, Tally};
use crate::world::World;

/// How often each is tried.
const TIMES: usize = 10;

/// More than any review that is read, in bytes.
const LENGTH: usize = 40_000_000;

pub(crate) fn has_curl() -> Option<()> {
    harness::require_tool("curl").map(drop)
}

pub(crate) fn early(world: &'static World) -> Result<Played, String> {
    let plane = world.plane;
    let guard = plane.guard("refusals", &GuardOptions::default());
    let body = plane.write_file("large", &" ".repeat(LENGTH));
    let mut tally = Tally::default();
    for (content_type, status) in [("text/plain", "415"), ("application/json", "413")] {
        for _ in 0..TIMES {
            let sent = Instant::now();
            let run = Command::new("curl")
                .args(["--silent", "--show-error", "--http2", "--max-time", "60"])
                .args(["--write-out", "%{http_version} %{http_code}"])
                .args(["--output", "/dev/null"])
                .args([
                    "--cacert",
                    &plane.pki.authority_file().display().to_string(),
                ])
                .args(["--header", &format!("content-type: {content_type}")])
                .args(["--data-binary", &format!("@{}", body.display())])
                .arg(format!("{}/validate?timeout=10s", guard.url))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stdout);
            let came = if !run.status.success() {
                Came::Failed(format!("{said} {}", String::from_utf8_lossy(&run.stderr)))
            } else if said == format!("2 {status}") {
                Came::Right
            } else {
                Came::Wrong(said.into_owned())
            };
            tally.count(sent, came);
        }
    }
    Ok(Played::answered(tally, "40 MB each, by curl"))
}
