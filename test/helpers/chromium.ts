import { existsSync } from "node:fs";
import { join } from "node:path";
import { type BrowserServer, chromium } from "playwright-core";

/** The first one has no windows, and takes a quarter of the processor time of a whole browser. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Flags that turn off the browser's background activity. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  // Text has the same width in both kinds of Chromium.
  "--font-render-hinting=none",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
].concat(["--disable-component-update", "--disable-sync"]);

/** Path of an installed Chromium; undefined without one. */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? "").split(":");
  const found = PROGRAMS.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [process.env.CHROMIUM ?? "", ...found].find((path) => path !== "" && existsSync(path));
}

/** Starts the browser that all tests share. Each test connects to it and has sessions of its own. */
export async function startBrowser(): Promise<BrowserServer> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error("Chromium is not installed.");
  return chromium.launchServer({ executablePath, headless: true, args: FLAGS, timeout: 60_000 });
}
