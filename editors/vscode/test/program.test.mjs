// The program, started as the extension starts it, with the protocol's library of Visual Studio Code.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const protocol = require("vscode-languageserver-protocol/node");
const { commandLine } = require("../out/program.js");

const MANIFEST = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`;

const FACTS = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: efs.csi.aws.com
`;

/** What is shown of the manifest, and what is offered at the first finding. */
async function shown(facts) {
  const top = await realpath(await mkdtemp(join(tmpdir(), "vscode-")));
  // In the folder itself, the class would be a manifest.
  await writeFile(join(top, "facts.yaml"), FACTS);
  const folder = join(top, "manifests");
  await mkdir(folder);
  const settings = { path: process.env.MULTI_ATTACH_GUARD ?? "", facts };
  const { command, args, options } = commandLine(settings, folder);
  const program = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
  const connection = protocol.createProtocolConnection(program.stdout, program.stdin);
  connection.listen();
  const published = new Promise((resolve) =>
    connection.onNotification(protocol.PublishDiagnosticsNotification.type, resolve),
  );
  const [rootUri, uri] = [folder, join(folder, "web.yaml")].map((path) => pathToFileURL(path).href);
  const capabilities = { textDocument: { publishDiagnostics: { relatedInformation: true } } };
  await connection.sendRequest(protocol.InitializeRequest.type, {
    processId: process.pid,
    capabilities,
    rootUri,
  });
  await connection.sendNotification(protocol.InitializedNotification.type, {});
  await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "yaml", version: 1, text: MANIFEST },
  });
  const at = { textDocument: { uri }, position: { line: 3, character: 25 } };
  const hover = await connection.sendRequest(protocol.HoverRequest.type, at);
  const { diagnostics } = facts.length ? { diagnostics: [] } : await published;
  const range = diagnostics[0]?.range ?? { start: at.position, end: at.position };
  const actions = await connection.sendRequest(protocol.CodeActionRequest.type, {
    textDocument: { uri },
    range,
    context: { diagnostics },
  });
  await connection.sendRequest(protocol.ShutdownRequest.type);
  const ended = new Promise((resolve) => program.on("exit", resolve));
  await connection.sendNotification(protocol.ExitNotification.type);
  assert.equal(await ended, 0);
  connection.dispose();
  await rm(top, { recursive: true });
  return { diagnostics, titles: actions.map((action) => action.title), hover: hover.contents.value };
}

test("a finding is shown, explained and repaired", async () => {
  const { diagnostics, titles, hover } = await shown([]);
  assert.deepEqual(diagnostics.map((found) => found.code), ["rolling-update-overlap"]);
  assert.equal(titles[0], "recreate: set the strategy to {type: Recreate}");
  assert.equal(titles.at(-1), "Ignore rolling-update-overlap here, with a reason");
  assert.match(hover, /^claim "data": ReadWriteOnce, class "gp3"\n.*\nUsed by Deployment web\.$/);
});

test("the facts that the settings name count", async () => {
  const { titles, hover } = await shown(["../facts.yaml"]);
  assert.deepEqual(titles, []);
  assert.match(hover, /efs\.csi\.aws\.com/);
});
