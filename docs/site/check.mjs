// Opens every page of the site in a browser, and fails if a link, anchor or picture is broken, if a
// page is wider than a telephone, or if text has too little contrast:
// node check.mjs DIRECTORY

import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const folder = resolve(process.argv[2]);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pages = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".html") && !["404.html", "print.html", "toc.html"].includes(name));
const faults = [];

const browser = await open();
const links = new Map();
const anchors = new Map();
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 375, height: 800 }, bypassCSP: true });
  for (const name of pages) {
    await page.goto(pathToFileURL(`${folder}/${name}`).href);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > 375) faults.push(`${name}: ${width} pixels wide on a screen of 375`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document.querySelector("main") ?? document, { runOnly: ["color-contrast"] }));
    for (const { nodes } of violations) {
      for (const node of nodes) faults.push(`${name} (${colorScheme}): ${node.target}: ${node.any[0].message}`);
    }
    const lost = await page.$$eval("img", (found) => found.filter((it) => !it.naturalWidth).map((it) => it.src));
    for (const picture of lost) faults.push(`${name}: ${picture} is no picture`);
    links.set(name, await page.$$eval("main a[href], body:not(:has(main)) a[href]", (found) => found.map((it) => it.href)));
    anchors.set(name, new Set(await page.$$eval("[id]", (found) => found.map((it) => it.id))));
  }
  await page.close();
}
await browser.close();

const base = pathToFileURL(`${folder}/`).href;
for (const [name, hrefs] of links) {
  for (const href of hrefs.filter((it) => it.startsWith("file:"))) {
    const [file, anchor] = href.replace(base, "").split("#");
    if (!anchors.has(file)) faults.push(`${name}: ${file} is no page`);
    else if (anchor && !anchors.get(file).has(decodeURIComponent(anchor))) faults.push(`${name}: ${file} has no #${anchor}`);
  }
}
for (const fault of faults) console.error(fault);
console.log(`${pages.length} pages, ${[...links.values()].flat().length} links, ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
