import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

/** Size and load time of the console. */
export interface ConsoleLoad {
  /** Scripts of all pages of an owner, gzipped, in bytes. */
  scriptBytes: number;
  /**
   * Median time from the request of the page to its load event, with an empty cache, in milliseconds. Undefined without
   * Chromium.
   */
  loadMs: number | undefined;
}

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const LOADS = 9;

/** Measures the console of a running service. @throws Error if the console is not built */
export async function measureConsole(port: number): Promise<ConsoleLoad> {
  const assets = fileURLToPath(new URL("../console/dist/assets", import.meta.url));
  if (!existsSync(assets)) throw new Error("The console is not built. Run npm run build:console.");
  const scripts = readdirSync(assets).filter((name) => /^(?!operator-).*\.js$/.test(name));
  const scriptBytes = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length, 0);
  if (!existsSync(CHROMIUM)) return { scriptBytes, loadMs: undefined };
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const times: number[] = [];
    for (let i = 0; i < LOADS; i++) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${port}/console/`, { waitUntil: "load" });
      times.push(await page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"));
      await context.close();
    }
    return { scriptBytes, loadMs: times.sort((a, b) => a - b)[Math.floor(LOADS / 2)] };
  } finally {
    await browser.close();
  }
}
