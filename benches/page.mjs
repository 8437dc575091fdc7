// The time that the page in the browser needs for a text of 1,000 lines. Only time in which the
// thread runs is counted, so that a busy machine does not matter:
// node benches/page.mjs target/page
//
// The goal is 50 ms for a verdict, and at most three times as much if every object is at fault.

import { readFileSync } from "node:fs";
import vm from "node:vm";
import { gunzipSync } from "node:zlib";

const script = readFileSync(`${process.argv[2]}/playground-program.js`, "utf8");
const { PROGRAM, bindgen } = vm.runInThisContext(`${script}; ({ PROGRAM, bindgen })`);
const program = bindgen();
program.initSync({ module: new WebAssembly.Module(gunzipSync(Buffer.from(PROGRAM, "base64"))) });
const { facts } = JSON.parse(program.contents()).clusters[0];

/** Milliseconds that this thread has run. */
const clock = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
const app = (at, strategy) => `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: app-${at}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-${at}}
spec:
  ${strategy}
  selector: {matchLabels: {app: app-${at}}}
  template:
    metadata: {labels: {app: app-${at}}}
    spec:
      containers: [{name: a, image: a, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: app-${at}}}]
---
`;
const text = (count, strategy) => Array.from({ length: count }, (_, at) => app(at, strategy)).join("");

/** The times of each step. */
function judge(manifest) {
  const times = [clock()];
  const checked = new program.Checked(manifest, facts, Date.now());
  checked.verdict();
  times.push(clock());
  checked.details(0);
  times.push(clock());
  checked.repair();
  times.push(clock());
  checked.free();
  return times.slice(1).map((time, at) => time - times[at]);
}

/** The median of each step. */
function median(manifest, runs = 21) {
  const all = Array.from({ length: runs }, () => judge(manifest));
  return all[0].map((_, step) => all.map((times) => times[step]).sort((a, b) => a - b)[runs >> 1]);
}

const line = (what, [verdict, details, repair]) =>
  `${what}: verdict ${verdict.toFixed(0)} ms, a finding opened ${details.toFixed(0)} ms, repair ${repair.toFixed(0)} ms`;
console.log(line("The first text, 17 lines", judge(text(1, "replicas: 1"))));
console.log(line("Then 1,003 lines, all at fault", judge(text(59, "replicas: 1"))));
const [none, all] = ["strategy: {type: Recreate}", "replicas: 1"].map((strategy) => median(text(59, strategy)));
console.log(line("1,003 lines, none at fault", none));
console.log(line("1,003 lines, all at fault", all));
console.log(`All at fault beside none: ${(all[0] / none[0]).toFixed(1)} times (goal: 3 at most)`);
