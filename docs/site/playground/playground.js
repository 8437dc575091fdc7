// The page: passes the pasted text to the program, and shows the answers. PROGRAM (base64 of gzip),
// bindgen() and RIGHT (titles and texts of right manifests) are in playground-program.js.
"use strict";

const $ = (id) => document.getElementById(id);
const COMMAND = "The command line does the same: multi-attach-guard check FILE.";
/** The maximum length of a text. With more, the page would not respond at once. */
const MOST = 300_000;
/** The texts to start from: the one in the box, and RIGHT, which the build made. */
const STARTS = [["the fault", $("text").value], ...RIGHT];
const OWN = "own";

let compiled;
let program;
let clusters = [];
let runbook = {};
/** The program's check of the text. */
let checked;
let repaired = "";

/** An element with these properties and children. */
function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Text with code between backticks. */
function prose(text) {
  return make("p", {}, ...text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part)));
}

function say(sentence) {
  $("status").textContent = sentence;
}

/** Asks the program. A failed one cannot be asked again and is replaced by a new one. */
function ask(question) {
  try {
    if (!program) {
      program = bindgen();
      program.initSync({ module: compiled });
    }
    return question(program);
  } catch (error) {
    // A sentence describes a fault of the text.
    if (typeof error !== "string") program = checked = undefined;
    throw error;
  }
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return through(bytes, new DecompressionStream("gzip"));
}

/** The bytes in pieces: a stream unpacks each piece as a whole, before anybody can cancel it. */
function pieces(bytes) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, (at += 16 << 10)));
    },
  });
}

/** The bytes of a stream, or an error if there are more than `most`. */
async function through(bytes, stream, most = Infinity) {
  const parts = [];
  let length = 0;
  for (const reader = pieces(bytes).pipeThrough(stream).getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new RangeError("too long");
    }
    parts.push(value);
  }
}

function tooLong(letters) {
  return `This text has ${letters.toLocaleString("en")} letters, and the page takes ${MOST.toLocaleString("en")}. ${COMMAND}`;
}

/** Refuses a text that is too long: a browser that shows megabytes in a box stops responding. */
function guard(event) {
  const letters = event.data?.length ?? 0;
  if (letters <= MOST) return;
  event.preventDefault();
  say(tooLong(letters));
}

/** Writes the line numbers, and marks those of findings: only these are elements. */
function number(findings) {
  const count = $("text").value.length > MOST ? 0 : $("text").value.split("\n").length;
  // The gravest findings come first.
  const severities = new Map(findings.toReversed().map(({ line, severity }) => [line, severity]));
  const parts = [];
  let next = 1;
  const until = (end) => {
    parts.push(Array.from({ length: end - next }, (_, at) => next + at).join("\n"));
    next = end + 1;
  };
  for (const line of [...severities.keys()].sort((one, other) => one - other)) {
    until(line);
    parts.push(make("b", { className: severities.get(line) }, `${line}`));
  }
  until(count + 1);
  $("lines").replaceChildren(...parts);
  $("lines").scrollTop = $("text").scrollTop;
}

/** Selects a line of the text. */
function jump(line) {
  const before = $("text").value.split("\n").slice(0, line);
  const end = before.join("\n").length;
  $("text").focus();
  $("text").setSelectionRange(end - before[line - 1].length, end);
  $("text").scrollTop = Math.max(0, ($("text").scrollHeight * (line - 6)) / $("text").value.split("\n").length);
}

/** All findings for an object. */
function card({ severity, object, findings }) {
  return make("article", { className: severity },
    make("h3", {}, make("span", { className: "severity" }, severity), ` ${object}`),
    ...findings.flatMap(({ rule, severity, brief, line, number }) => [
      make("p", { className: "brief" }, make("code", {}, rule), ` · ${severity} · ${brief}`),
      make("p", { className: "place more" },
        make("button", { type: "button", className: "jump", onclick: () => jump(line) }, `line ${line}`),
        make("a", { href: `rules.html#${rule}` }, `rule ${rule}`),
        ...(runbook[rule] ? [make("a", { href: `runbook.html#${runbook[rule]}` }, "when it hangs already")] : []),
        make("a", { href: "#install" }, "install the check"),
      ),
      details(number),
    ]),
  );
}

/** The pictures and the long text of a finding, drawn when the user opens them. */
function details(number) {
  const made = make("details", { open: number === 0 }, make("summary", {}, "What happens, and the repair"));
  made.addEventListener("toggle", () => attempt(() => {
    made.insertAdjacentHTML("beforeend", ask(() => checked.details(number)));
  }), { once: true });
  return made;
}

/** Gets the repaired text, after the verdict is on the page. */
function repair() {
  const answer = JSON.parse(ask(() => checked.repair()));
  repaired = answer.repaired;
  const kinds = { "-": "del", "+": "ins" };
  $("diff").replaceChildren(...answer.diff.split("\n").map((line) => make(kinds[line[0]] ?? "span", {}, `${line}\n`)));
  $("repair").hidden = repaired === $("text").value;
}

/** Calls `act`, and reports a failure of the program. */
function attempt(act) {
  try {
    act();
  } catch (error) {
    if (typeof error === "string") return say(error);
    say(`The program failed on this text, which is a fault of the program. Change the text to go on. ${COMMAND}`);
  }
}

let repairing;
/** The pending check after typing, if there is one. */
let waiting;

function later() {
  clearTimeout(waiting);
  waiting = setTimeout(check, 150);
}

function check() {
  const [text, facts] = [$("text").value, $("facts").value];
  clearTimeout(repairing);
  clearTimeout(waiting);
  waiting = undefined;
  // So that a changed text can be replaced by the one that it came from.
  if (STARTS[$("start").selectedIndex]?.[1] !== text) $("start").selectedIndex = -1;
  $("found").replaceChildren();
  $("repair").hidden = true;
  const long = Math.max(text.length, facts.length);
  if (long > MOST || !text.trim()) {
    number([]);
    return say(long > MOST ? tooLong(long) : "Paste a manifest to begin.");
  }
  attempt(() => {
    const begun = performance.now();
    let found = [];
    try {
      checked?.free();
      checked = undefined;
      checked = ask(({ Checked }) => new Checked(text, facts, Date.now()));
      const { summary, incomplete, objects, asides } = JSON.parse(checked.verdict());
      $("found").insertAdjacentHTML("beforeend", incomplete);
      $("found").append(...objects.map(card));
      $("found").insertAdjacentHTML("beforeend", asides);
      found = objects.flatMap(({ findings }) => findings);
      say(`${summary} Judged in this page in ${Math.max(1, Math.round(performance.now() - begun))} ms.`);
      if (found.length) repairing = setTimeout(() => attempt(repair));
    } finally {
      number(found);
    }
  });
}

function explain() {
  const line = $("line").value;
  $("meaning").replaceChildren();
  if (!line.trim()) return;
  let found;
  try {
    found = JSON.parse(ask(({ explain }) => explain(line.slice(0, MOST))));
  } catch {
    return $("meaning").append(`The program failed on this line, which is a fault of the program. ${COMMAND}`);
  }
  if (!found.known.length) {
    return $("meaning").append("This line is not known. Give the message of an Event about a volume, as kubectl describe pod shows it.");
  }
  $("meaning").append(...found.known.flatMap(meaning));
}

/** The explanation of one message; a line may have two. */
function meaning({ searched, says, meaning, look, fix, causes }) {
  const slug = searched.toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-");
  const parts = [make("h3", {}, make("a", { href: `runbook.html#${slug}` }, searched)), prose(`${meaning} (${says})`)];
  if (look.length) {
    parts.push(make("h4", {}, "First look"), make("pre", { className: "diff", tabIndex: 0 }, look.join("\n")));
  }
  parts.push(make("h4", {}, "The way out"), prose(fix));
  if (causes.length) {
    const links = causes.map((cause) => make("a", { href: `runbook.html#${cause}` }, cause));
    parts.push(make("p", { className: "more" }, "Causes: ", ...links));
  }
  return parts;
}

/** Shows the rows of the storage table that have all the words in their names, otherwise anywhere. */
function filter() {
  const words = $("product").value.toLowerCase().split(/\s+/);
  const rows = [...$("products").tBodies[0].rows];
  const found = (key) => rows.filter((row) => words.every((word) => row.dataset[key].includes(word)));
  const named = found("names");
  const shown = named.length ? named : found("words");
  for (const row of rows) row.hidden = !shown.includes(row);
  $("count").textContent = `${shown.length} ${shown.length === 1 ? "driver" : "drivers"}`;
}

function tabulate({ columns, storage }) {
  const cells = (row) => row.map((cell, at) => make(at ? "td" : "th", at ? {} : { scope: "row" }, cell));
  $("products").append(
    make("thead", {}, make("tr", {}, ...columns.map((column) => make("th", { scope: "col" }, column)))),
    make("tbody", {}, ...storage.map(([part, row]) => {
      const made = make("tr", {}, ...cells(row));
      made.dataset.names = row.slice(0, 2).join(" ").toLowerCase();
      made.dataset.words = `${part} ${row.join(" ")}`.toLowerCase();
      return made;
    })),
  );
  filter();
}

/** Shows the facts of the chosen cluster; the user's own facts are left unchanged. */
function choose() {
  const chosen = clusters.find(({ name }) => name === $("cluster").value);
  if (chosen) $("facts").value = chosen.facts;
  $("facts-box").open = !chosen;
}

/** The text, and the facts if they are the user's own, in the form of a link. */
async function fragment() {
  const cluster = $("cluster").value;
  const held = JSON.stringify({ text: $("text").value, facts: cluster === OWN ? $("facts").value : "" });
  const bytes = await through(new TextEncoder().encode(held), new CompressionStream("deflate-raw"));
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `#${cluster}.${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Opens the text that the address contains after its #. */
async function open() {
  const [, cluster, base64] = location.hash.match(/^#([^.]*)\.(.*)$/) ?? [];
  if (base64 === undefined) return check();
  try {
    const letters = atob(base64.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const bytes = await through(packed, new DecompressionStream("deflate-raw"), 8 * MOST);
    const { text, facts } = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof text !== "string" || typeof facts !== "string") throw new TypeError("no text");
    $("text").value = text;
    if (cluster === OWN) $("facts").value = facts;
    const known = [...$("cluster").options].some(({ value }) => value === cluster);
    $("cluster").value = known ? cluster : clusters[0].name;
    choose();
    check();
    if (!known) say(`The link names a cluster that this page does not know, so ${clusters[0].title} is taken. ${$("status").textContent}`);
  } catch {
    check();
    say(`The link is damaged, and its text cannot be read: copy it again as a whole. ${$("status").textContent}`);
  }
}

async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    say(done);
  } catch {
    say("The browser did not allow copying.");
  }
}

async function share() {
  // A pending check would overwrite the message below.
  if (waiting) check();
  const hash = await fragment();
  history.replaceState(null, "", hash);
  await copy(location.href, "The link is copied. It holds the text itself; no server has it.");
}

async function begin() {
  try {
    compiled = await WebAssembly.compile(await unpack(PROGRAM));
    const contents = JSON.parse(ask(({ contents }) => contents()));
    ({ clusters, runbook } = contents);
    tabulate(contents);
  } catch {
    return say(`This page needs WebAssembly, which this browser does not have or which is switched off. ${COMMAND}`);
  }
  $("cluster").append(
    ...clusters.map(({ name, title }) => make("option", { value: name }, title)),
    make("option", { value: OWN }, "own facts"),
  );
  $("start").append(...STARTS.map(([title]) => make("option", {}, title)));
  choose();
  const own = () => {
    $("cluster").value = OWN;
    later();
  };
  for (const [id, event, act] of [
    ["text", "beforeinput", guard],
    ["facts", "beforeinput", guard],
    ["text", "input", later],
    ["facts", "input", own],
    ["line", "input", explain],
    ["product", "input", filter],
    ["cluster", "change", () => (choose(), check())],
    ["text", "scroll", () => ($("lines").scrollTop = $("text").scrollTop)],
    ["share", "click", share],
    ["start", "change", () => (([, $("text").value] = STARTS[$("start").selectedIndex]), check())],
    ["copy", "click", () => copy(repaired, "The repaired text is copied.")],
    ["use", "click", () => (($("text").value = repaired), check(), $("text").focus())],
  ]) {
    $(id).addEventListener(event, act);
  }
  window.addEventListener("hashchange", open);
  await open();
}

begin();
