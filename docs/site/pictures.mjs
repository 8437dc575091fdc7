// Takes pictures of a report in light and dark: node pictures.mjs REPORT.html DIRECTORY

import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [report, folder] = process.argv.slice(2).map((it) => resolve(it));
const browser = await open();
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 900, height: 600 } });
  await page.goto(pathToFileURL(report).href);
  await page.screenshot({ path: `${folder}/${basename(report, ".html")}-${colorScheme}.png`, fullPage: true });
}
await browser.close();
