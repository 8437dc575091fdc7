// Opens the page in a browser and does what people do, with good texts and bad ones:
// node page.mjs FOLDER PICTURES

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { deflateRawSync } from "node:zlib";
import { open } from "./browser.mjs";

const [folder, pictures] = process.argv.slice(2);
const FILES = ["playground.html", "playground.css", "report.css", "playground-program.js", "playground.js"];
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const requests = [];
const server = createServer((request, response) => {
  const name = request.url.slice(1);
  requests.push(name);
  if (!FILES.includes(name)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(name)] }).end(readFileSync(`${folder}/${name}`));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const address = `http://127.0.0.1:${server.address().port}/playground.html`;

const browser = await open();
const steps = [];
const step = (name, act, options = {}) => steps.push({ name, act, options });

const claim = (name) => `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ${name}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`;
const deployment = (name) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec:
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      containers: [{name: a, image: a, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: ${name}}}]
`;
const status = (page) => page.locator("#status");
const says = (page, words) => status(page).filter({ hasText: words }).waitFor();
const judged = (page) => says(page, /Judged in this page/);
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
/** Tab until that has the focus. */
const tab = async (page, wanted) => {
  for (let count = 0; count < 60; count++) {
    if ((await focused(page)) === wanted) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${wanted} cannot be reached by Tab`);
};
/** Sets the text at once: typing a long one takes a browser minutes. */
const replace = (page, text) =>
  page.evaluate((text) => {
    document.querySelector("#text").value = text;
    document.querySelector("#text").dispatchEvent(new Event("input"));
  }, text);
const base64url = (bytes) => bytes.toString("base64url");
const packed = (held) => base64url(deflateRawSync(JSON.stringify(held)));

step("the example, its line, its links and its repair are shown", async (page) => {
  await judged(page);
  assert.match(await status(page).textContent(), /^1 error/);
  assert.equal(await page.locator("#found article").count(), 1);
  await page.locator("#found svg").nth(3).waitFor();
  assert.match(await page.locator(".more a").nth(0).getAttribute("href"), /^rules\.html#[a-z-]+$/);
  assert.equal(await page.locator(".more a").nth(1).getAttribute("href"), "runbook.html#rollout-overlap");
  assert.equal(await page.locator("#lines .error").textContent(), "15");
  assert.match(await page.locator("#diff ins").first().textContent(), /strategy/);
  assert.equal(await page.locator("#found .long p").isVisible(), false);
  // Where one node has the volume for good, nothing hangs.
  await page.selectOption("#cluster", "k3s");
  await says(page, /^No findings/);
  assert.equal(await page.locator("#repair").isHidden(), true);
});

step("right manifests are there to start from", async (page) => {
  await judged(page);
  const titles = await page.locator("#start option").allTextContents();
  assert.equal(titles.length, 8);
  assert.equal(await page.inputValue("#start"), titles[0]);
  for (const title of titles.slice(1)) {
    await page.selectOption("#start", title);
    await says(page, /^No findings/);
    await page.fill("#text", "");
    await says(page, /Paste a manifest/);
    assert.equal(await page.inputValue("#start"), "");
  }
  await page.selectOption("#start", titles[0]);
  await says(page, /^1 error/);
});

step("nothing is sent, whatever is done", async (page) => {
  await judged(page);
  await page.fill("#text", claim("secret") + deployment("secret"));
  await page.locator("#found h3", { hasText: "secret" }).waitFor();
  await page.fill("#line", 'Multi-Attach error for volume "secret"');
  await page.locator("#meaning h3").waitFor();
  await page.click("#share");
  await says(page, "The link is copied.");
  await page.selectOption("#cluster", "own");
  await page.fill("#facts", "");
  await judged(page);
  assert.deepEqual(page.asked.filter((url) => !FILES.some((name) => url === address.replace("playground.html", name))), []);
  // What a script could still try.
  await page.evaluate(() => {
    globalThis.blocked = [];
    document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
    fetch("/fetched").catch(() => {});
    navigator.sendBeacon("/beacon", "text");
    new EventSource("/events");
    new Image().src = "/image";
    for (const name of ["iframe", "script"]) {
      document.body.append(Object.assign(document.createElement(name), { src: `http://localhost/${name}` }));
    }
  });
  await page.waitForFunction(() => blocked.length === 6);
  assert.deepEqual([...new Set(requests)].sort(), [...FILES].sort());
});

step("the keyboard is enough", async (page) => {
  await judged(page);
  await tab(page, "cluster");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.notEqual(await page.inputValue("#cluster"), "eks");
  await tab(page, "text");
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(claim("keyed") + deployment("keyed"));
  await says(page, /^1 error.*Judged/);
  await tab(page, "line 9");
  await page.keyboard.press("Enter");
  const chosen = await page.evaluate(() => {
    const text = document.querySelector("#text");
    return text.value.slice(text.selectionStart, text.selectionEnd);
  });
  assert.equal(chosen, "spec:");
  await tab(page, "copy");
  await page.keyboard.press("Enter");
  await says(page, "The repaired text is copied.");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /type: Recreate/);
  await tab(page, "use");
  await page.keyboard.press("Space");
  await says(page, /^No findings/);
  await tab(page, "line");
  await page.keyboard.insertText("FailedAttachVolume");
  await page.locator("#meaning h3").waitFor();
  await tab(page, "product");
  await page.keyboard.insertText("longhorn");
  assert.equal(await page.locator("#count").textContent(), "1 driver");
  assert.equal(await page.locator("#products td", { hasText: /^driver\.longhorn\.io$/ }).isVisible(), true);
  assert.equal(await page.locator("#products td", { hasText: /^ebs\.csi\.aws\.com$/ }).isVisible(), false);
  // What can be pressed or typed into is reached by Tab.
  const all = await page.locator("button:visible, select:visible, textarea:visible, input:visible, a:visible, summary").all();
  const without = [];
  for (const one of all) if (!(await one.evaluate((it) => it.tabIndex === 0))) without.push(await one.textContent());
  assert.deepEqual(without, []);
});

step("findings are opened by keyboard, and their long text apart", async (page) => {
  await judged(page);
  await page.fill("#text", ["a", "b"].map((name) => `${claim(name)}${deployment(name)}---\n`).join(""));
  await says(page, /^2 errors/);
  const [first, second] = await page.locator("#found article").all();
  await first.locator("svg").first().waitFor();
  // Nothing is drawn for a finding that nobody has opened.
  assert.equal(await second.locator("svg, .long").count(), 0);
  await second.locator(".jump").focus();
  for (const [summary, shown] of [["What happens, and the repair", "svg"], ["In full", ".long p"]]) {
    await tab(page, summary);
    await page.keyboard.press("Enter");
    await second.locator(shown).first().waitFor();
  }
  assert.match(await second.locator(".long p").textContent(), /^Deployment b: .{100}/);
  assert.equal(await first.locator(".long p").isVisible(), false);
  await page.keyboard.press("Enter");
  assert.equal(await second.locator(".long p").isVisible(), false);
});

step("a link holds the text, the cluster and own facts", async (page) => {
  await judged(page);
  const [text, facts] = [claim("ü-€") + deployment("ü-€"), "apiVersion: v1\nkind: Node\nmetadata: {name: only}\n"];
  await page.fill("#text", text);
  await page.selectOption("#cluster", "longhorn");
  await page.click("#share");
  await says(page, "The link is copied.");
  const other = await page.context().newPage();
  await other.goto(await page.evaluate(() => navigator.clipboard.readText()));
  await judged(other);
  assert.deepEqual([await other.inputValue("#text"), await other.inputValue("#cluster")], [text, "longhorn"]);
  await page.locator("#facts-box summary").click();
  await page.fill("#facts", facts);
  assert.equal(await page.inputValue("#cluster"), "own");
  await page.click("#share");
  await says(page, "The link is copied.");
  await other.goto(page.url());
  await says(other, /^No findings/);
  assert.deepEqual([await other.inputValue("#facts"), await other.inputValue("#cluster")], [facts, "own"]);
});

for (const [what, hash] of Object.entries({
  "no base64": "eks.%%%",
  "no deflate": "eks.AAAA",
  "nothing": "eks.",
  "no JSON": `eks.${base64url(deflateRawSync("text"))}`,
  "no text": `eks.${packed({ text: 1 })}`,
  "null": `eks.${packed(null)}`,
  "half of a link": `eks.${packed({ text: deployment("a"), facts: "" }).slice(0, 60)}`,
  "a bomb": `eks.${base64url(deflateRawSync(Buffer.alloc(200 << 20)))}`,
})) {
  step(`a damaged link is said to be so: ${what}`, async (page) => {
    await says(page, /^The link is damaged/);
    await page.fill("#text", claim("a") + deployment("a"));
    await says(page, /^1 error/);
  }, { hash });
}

step("a link to a cluster that is not known", async (page) => {
  await says(page, /^The link names a cluster that this page does not know, so Amazon EKS is taken. 1 error/);
}, { hash: `mars.${packed({ text: claim("a") + deployment("a"), facts: "" })}` });

const aliases = Array.from({ length: 30 }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`)}]`).join("\n");
step("5 MB that are pasted are not taken", async (page) => {
  await judged(page);
  const before = await page.inputValue("#text");
  await page.evaluate((text) => navigator.clipboard.writeText(text), "# padding\n".repeat(500_000));
  await page.focus("#text");
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Control+V");
  await says(page, /^This text has 5,000,000 letters, and the page takes 300,000.*multi-attach-guard check FILE/);
  assert.equal(await page.inputValue("#text"), before);
  await page.fill("#text", claim("a") + deployment("a"));
  await says(page, /^1 error/);
});

for (const [what, text, words] of [
  ["one endless line", "a".repeat(1_000_000), /has 1,000,000 letters/],
  ["aliases of aliases", `apiVersion: v1\nkind: Pod\na0: &a0 x\n${aliases}\n`, /Judged/],
  ["depth", `apiVersion: v1\nkind: Pod\na: ${"[".repeat(100_000)}`, /Judged/],
  ["a template", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Values.name }}\n", /helm template/],
  ["no YAML", "kind: [\n", /Judged/],
  ["Windows line ends", (claim("a") + deployment("a")).replaceAll("\n", "\r\n"), /^1 error/],
  ["nothing", "  \n", /Paste a manifest/],
  ["markup", "kind: <img src=x onerror=alert(1)>\napiVersion: <script>\n", /Judged/],
]) {
  step(`a text that is bad: ${what}`, async (page) => {
    await judged(page);
    await replace(page, text);
    await says(page, words);
    assert.equal(await page.locator("#found img, #found script").count(), 0);
    await page.fill("#text", claim("a") + deployment("a"));
    await says(page, /^1 error/);
  });
}

step("a program that fails is replaced", async (page) => {
  await says(page, /^The program failed on this text/);
  assert.match(await status(page).textContent(), /multi-attach-guard check FILE/);
  await page.fill("#text", claim("a") + deployment("a"));
  await says(page, /^1 error/);
}, {
  before: () => {
    const { Instance } = WebAssembly;
    let failed = false;
    WebAssembly.Instance = function (...parts) {
      const { exports } = new Instance(...parts);
      const checked_new = (...values) => {
        if (failed) return exports.checked_new(...values);
        failed = true;
        throw new WebAssembly.RuntimeError("unreachable");
      };
      return Object.create(Instance.prototype, { exports: { value: { ...exports, checked_new } } });
    };
  },
});

step("without WebAssembly the command line is named", async (page) => {
  await says(page, /needs WebAssembly.*multi-attach-guard check FILE/);
}, { before: () => delete globalThis.WebAssembly });

step("without JavaScript the command line is named", async (page) => {
  assert.match(await page.locator("noscript").innerText(), /multi-attach-guard check FILE/);
}, { context: { javaScriptEnabled: false } });

step("1,000 lines are judged", async (page) => {
  await judged(page);
  const text = Array.from({ length: 71 }, (_, at) => `${claim(`w${at}`)}${deployment(`w${at}`)}---\n`).join("");
  await page.fill("#text", text);
  await says(page, /^71 errors/);
  console.log(`${text.split("\n").length} lines: ${await status(page).textContent()}`);
});

step("60,000 short lines are numbered, and one line after them", async (page) => {
  await judged(page);
  await replace(page, `${deployment("a")}---\n${"#\n".repeat(60_000)}${claim("a").replace("---\n", "")}`);
  await says(page, /^1 error/);
  const numbers = await page.locator("#lines").evaluate((it) => it.innerText.split("\n").map(Number));
  assert.deepEqual(numbers, Array.from({ length: numbers.length }, (_, at) => at + 1));
  assert.ok(numbers.length > 60_000);
  const heights = await page.evaluate(() => ["lines", "text"].map((id) => document.getElementById(id).scrollHeight));
  assert.ok(Math.abs(heights[0] - heights[1]) < 40, heights);
  await replace(page, "a: b");
  await says(page, /^No findings/);
  assert.equal(await page.locator("#lines").textContent(), "1");
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [375, 1280]) {
    const picture = `${pictures}/playground-${width}-${colorScheme}.png`;
    step(`${width} pixels, ${colorScheme}`, async (page) => {
      await judged(page);
      await page.fill("#line", 'Multi-Attach error for volume "pv-1"');
      await page.fill("#product", "ceph");
      await page.locator("#meaning h3").waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      // The text stays in view beside the verdict, and covers nothing below it.
      await page.locator("#storage").evaluate((it) => it.scrollIntoView());
      const bottom = await page.locator("#check").evaluate((it) => it.getBoundingClientRect().bottom);
      const top = await page.locator("#explain").evaluate((it) => it.getBoundingClientRect().top);
      assert.ok(bottom <= top, `${bottom} > ${top}`);
      // Cards out of view would be left blank.
      await page.addStyleTag({ content: "article { content-visibility: visible !important; }" });
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: picture, fullPage: true });
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ target }) => target)]), []);
    }, { context: { colorScheme, viewport: { width, height: 800 }, bypassCSP: true } });
  }
}

let faults = 0;
for (const { name, act, options } of steps) {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"], ...options.context });
  // Machines that run other suites beside this one are slow, and only a failure reaches the limit.
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  page.asked = [];
  page.on("request", (request) => page.asked.push(request.url()));
  const errors = [];
  page.on("pageerror", (error) => errors.push(error));
  if (options.before) await page.addInitScript(options.before);
  try {
    await page.goto(options.hash ? `${address}#${options.hash}` : address);
    await act(page);
    assert.deepEqual(errors, []);
    console.log(`ok ${name}`);
  } catch (error) {
    faults++;
    console.error(`FAILED ${name}: ${error.message}\nThe page says: ${await page.locator("#status").textContent().catch(() => "nothing")}`);
  }
  await context.close();
}
await browser.close();
server.close();
console.log(`${steps.length} steps, ${faults} faults`);
process.exit(faults ? 1 : 0);
