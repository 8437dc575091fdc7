//! Y7–Y9: pods that end, or never begin.

use serde_json::json;

use super::*;
use crate::manifests::Volume;

/// Long enough for the other pod to meet the first.
const A_WHILE: u32 = 8;

pub(super) fn scenarios() -> Vec<Scenario> {
    let one = || Volume::new(&[RWO]);
    let import = || {
        Workload::job("import")
            .spec("parallelism", json!(2))
            .spec("completions", json!(2))
    };
    let suspended = |job: Workload| job.spec("suspend", json!(true));
    vec![
        Scenario::new("Y7", "a Job with parallelism 2 whose pods end")
            .volume(one())
            .apply(&import().ends_after(A_WHILE))
            .ends(&[Delay]),
        Scenario::new("Y7o", "the same, RWOP")
            .volume(Volume::new(&[RWOP]))
            .apply(&import().ends_after(A_WHILE))
            .ends(&[Nothing])
            .engine_says(
                Delay,
                "the second pod waits for the first, if without an event",
            ),
        Scenario::new("Y8", "a suspended Job with parallelism 2")
            .volume(one())
            .apply(&suspended(import()))
            .ends(&[Nothing]),
        Scenario::new("Y8u", "the same, resumed; its pods end")
            .volume(one())
            .apply(&suspended(import().ends_after(A_WHILE)))
            .then(Action::Kubectl(vec![
                "patch",
                "job/import",
                "--patch={\"spec\":{\"suspend\":false}}",
            ]))
            .ends(&[Delay]),
        Scenario::new("Y8c", "a suspended CronJob and a Deployment share a claim")
            .volume(one())
            .apply(&suspended(Workload::cron_job("backup")))
            .apply(&web().recreate())
            .ends(&[Nothing]),
    ]
}
