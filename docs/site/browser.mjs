import { chromium } from "playwright-core";

/** The browser of this machine, without a window. */
export const open = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking"],
  });
