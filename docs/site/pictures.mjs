// Takes pictures of a page in light and dark: node pictures.mjs PAGE.html DIRECTORY [WIDTH...]

import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const [name, folder] = process.argv.slice(2, 4).map((it) => resolve(it));
const widths = process.argv.slice(4).map(Number);
const browser = await open();
for (const colorScheme of ["light", "dark"]) {
  for (const width of widths.length ? widths : [900]) {
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 600 } });
    await page.goto(pathToFileURL(name).href);
    // The playground fills this element when it is done.
    await page.waitForFunction(() => document.querySelector("#status")?.textContent !== "");
    const file = [basename(name, ".html"), ...(widths.length ? [width] : []), colorScheme].join("-");
    await page.screenshot({ path: `${folder}/${file}.png`, fullPage: true });
    await page.close();
  }
}
await browser.close();
