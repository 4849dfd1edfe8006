import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { fixture } from "../helpers/lifetime.ts";
import { connect, skipReason } from "./chromium.ts";
import { type Answers, FAILING, NEW, RUNNING, SILENT, USED } from "./scene/answers.ts";
import { openScene } from "./scene/scene.ts";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Reference photos. `PHOTOS=update` takes them again; look at each before you commit it. `PHOTOS=all` compares all of
 * them, which takes minutes. Without it, each page is compared once.
 */
const REFERENCES = resolve(import.meta.dirname, "photos");
const isUpdate = process.env.PHOTOS === "update";
const isAll = isUpdate || process.env.PHOTOS === "all";

/** Largest share of the blocks of a photo that may differ from the reference. Fonts differ between machines. */
const MOST_DIFFERENT = 0.04;

interface Scene {
  readonly path: string;
  readonly answers?: Answers;
  readonly signedIn?: boolean;
  /** A person signs in, or has, in place of an owner token. */
  readonly isPerson?: boolean;
  /** Brings the page into the state of the photo. */
  readonly act?: (page: Page) => Promise<unknown>;
}

const WIDE = { width: 1440, height: 900 };
const MIDDLE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 844 };

/** Every page, at every width, light and dark; without `isAll` once, in turn middle and light, or narrow and dark. */
const PAGES: Record<string, Scene> = {
  "sign-in": { path: "/console", signedIn: false },
  overview: { path: "/console" },
  activity: { path: "/console/activity" },
  run: { path: "/console/runs/gen_k2m4p6" },
  playground: { path: "/console/playground", act: ask },
  keys: { path: "/console/keys" },
  subjects: { path: "/console/subjects" },
  limits: { path: "/console/limits" },
  alerts: { path: "/console/alerts" },
  ledger: { path: "/console/ledger" },
  audit: { path: "/console/audit" },
  gallery: { path: "/console/gallery" },
  "operator-home": { path: "/console/operator" },
  "operator-workspaces": { path: "/console/operator/workspaces" },
  "operator-workspace": { path: "/console/operator/workspaces/globex" },
  "operator-models": { path: "/console/operator/models" },
  "operator-replicas": { path: "/console/operator/replicas" },
  "operator-alerts": { path: "/console/operator/alerts" },
  "operator-run": { path: "/console/operator/runs/gen_k2m4p6?workspace=acme" },
  members: { path: "/console/members", isPerson: true },
};

/** States of pages, once of middle width and light, once narrow and dark. Compared with `isAll` only. */
const STATES: Record<string, Scene> = {
  "overview-loading": { path: "/console", answers: SILENT },
  "overview-empty": { path: "/console", answers: NEW },
  "overview-failed": { path: "/console", answers: FAILING },
  "overview-charts": {
    path: "/console",
    act: (page) =>
      page
        .locator(".u-over")
        .first()
        .hover({ position: { x: 180, y: 60 } }),
  },
  "activity-drawer": {
    path: "/console/activity",
    act: (page) => page.locator('time[datetime^="2026-03-14T09:24:41"]').click(),
  },
  "activity-running": {
    path: "/console/activity",
    answers: RUNNING,
    act: (page) => page.getByText("Running now").first().waitFor(),
  },
  "activity-empty": { path: "/console/activity", answers: NEW },
  "subjects-one": { path: "/console/subjects?subject=user%3Au-4711" },
  "subjects-export": {
    path: "/console/subjects",
    act: (page) => page.getByRole("button", { name: "Export" }).click(),
  },
  "subjects-cap": {
    path: "/console/subjects",
    act: (page) => page.getByRole("button", { name: "Set a cap for each user" }).click(),
  },
  "subjects-empty": { path: "/console/subjects", answers: NEW },
  "keys-create": { path: "/console/keys", act: (page) => page.getByRole("button", { name: "Create a key" }).click() },
  "keys-secret": { path: "/console/keys", act: createKey },
  "keys-revoke": {
    path: "/console/keys",
    act: (page) =>
      page
        .getByRole("button", { name: /^Revoke/ })
        .first()
        .click(),
  },
  "go-to": {
    path: "/console",
    act: async (page) => {
      await page.keyboard.press("Control+k");
      await page.keyboard.type("a");
    },
  },
  "keys-rotate": {
    path: "/console/keys",
    act: (page) =>
      page
        .getByRole("button", { name: /^Rotate/ })
        .first()
        .click(),
  },
  "keys-empty": { path: "/console/keys", answers: NEW },
  "keys-loading": { path: "/console/keys", answers: SILENT },
  "alerts-secret": { path: "/console/alerts", answers: NEW, act: setAlerts },
  "alerts-empty": { path: "/console/alerts", answers: NEW },
  "alerts-loading": { path: "/console/alerts", answers: SILENT },
  "alerts-failed": { path: "/console/alerts", answers: FAILING },
  "ledger-failed": { path: "/console/ledger", answers: FAILING },
  "activity-text": {
    path: "/console/activity",
    act: async (page) => {
      await page.getByRole("button", { name: "Text of requests" }).click();
      await page.getByLabel("Keep it").selectOption("For 7 days");
    },
  },
  "run-text": { path: "/console/runs/gen_k2m4p6", act: showText },
  "run-running": { path: "/console/runs/gen_k2m4p6", answers: RUNNING },
  "operator-run-running": { path: "/console/operator/runs/gen_k2m4p6?workspace=acme", answers: RUNNING },
  "playground-compare": { path: "/console/playground", act: compare },
  "playground-schema": { path: "/console/playground", act: (page) => page.getByText("Strict JSON").click() },
  "playground-failed": {
    path: "/console/playground",
    answers: FAILING,
    act: async (page) => {
      await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
      await page.getByRole("button", { name: "Ask" }).click();
      await page.getByRole("alert").waitFor();
    },
  },
  "operator-home-empty": { path: "/console/operator", answers: NEW },
  "operator-home-failed": { path: "/console/operator", answers: FAILING },
  "operator-test": {
    path: "/console/operator/models",
    act: async (page) => {
      await page.getByRole("button", { name: "Test gemini-3-pro" }).click();
      await page.getByText(/^It does not answer/).waitFor();
    },
  },
  "operator-disable": {
    path: "/console/operator/models",
    act: (page) => page.getByRole("button", { name: "Disable gemini-3-pro" }).click(),
  },
  "operator-audit": { path: "/console/operator/audit" },
  "sign-in-provider": { path: "/console", signedIn: false, isPerson: true, act: findProvider },
  "operator-sign-in": { path: "/console/operator", signedIn: false },
  "gallery-drawer": {
    path: "/console/gallery",
    act: (page) => page.getByRole("button", { name: "Open a drawer" }).click(),
  },
};

function findProvider(page: Page): Promise<void> {
  return page.getByRole("link", { name: "Sign in with Keycloak" }).waitFor();
}

async function ask(page: Page): Promise<void> {
  await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("Done", { exact: true }).last().waitFor();
}

async function compare(page: Page): Promise<void> {
  await page.getByLabel("Compare low and high").check();
  await ask(page);
  await page.getByText("Effort high").scrollIntoViewIfNeeded();
}

async function createKey(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Store it now.").waitFor();
}

async function showText(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Show the text" }).click();
  await page.getByRole("heading", { name: "Drafts" }).waitFor();
  await page.getByRole("heading", { name: "What was said" }).evaluate((element) => element.scrollIntoView());
}

async function setAlerts(page: Page): Promise<void> {
  await page.getByLabel("Webhook URL").fill("https://example.com/hook");
  await page.getByLabel("Credit below").fill("250");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Store it now.").waitFor();
}

const test = base.extend("browser", { scope: "file" }, fixture(connect));

describe.skipIf(skipReason !== undefined)("photos of the console", () => {
  const light = { size: MIDDLE, scheme: "light" } as const;
  const dark = { size: NARROW, scheme: "dark" } as const;
  const all = [WIDE, MIDDLE, NARROW].flatMap((size) =>
    (["light", "dark"] as const).map((scheme) => ({ size, scheme })),
  );
  const pages = Object.entries(PAGES).flatMap(([name, scene], at) =>
    (isAll ? all : [at % 2 === 0 ? light : dark]).map((view) => ({ name, scene, ...view })),
  );
  const states = Object.entries(STATES).flatMap(([name, scene]) =>
    [light, dark].map((view) => ({ name, scene, ...view })),
  );
  const shots = [...pages, ...(isAll ? states : [])];
  test.for(shots)("$name at $size.width px, $scheme", async ({ scene, name, size, scheme }, { browser }) => {
    const { path, answers = USED, act, ...who } = scene;
    const page = await openScene(browser, path, answers, { viewport: size, colorScheme: scheme, ...who });
    try {
      await page.getByRole("heading", { level: 1 }).waitFor();
      if (answers !== SILENT) await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await act?.(page);
      await page.evaluate("document.fonts.ready");
      await page.evaluate(AXE);
      const { violations } = await page.evaluate<Pick<AxeResults, "violations">>("axe.run()");
      assert.deepEqual(
        violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`)),
        [],
      );
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
      await compareWithReference(page, `${name}-${size.width}-${scheme}.webp`);
    } finally {
      await page.context().close();
    }
  });
});

async function compareWithReference(page: Page, file: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 25 });
  const reference = join(REFERENCES, file);
  if (isUpdate) {
    await mkdir(REFERENCES, { recursive: true });
    return writeFile(reference, data, "base64");
  }
  assert.ok(existsSync(reference), `There is no reference ${file}. PHOTOS=update takes it.`);
  const share = await page.evaluate<number>(`(${DIFFERENCE})("${data}", "${readFileSync(reference, "base64")}")`);
  if (share <= MOST_DIFFERENT) return;
  const taken = join(tmpdir(), file);
  await writeFile(taken, data, "base64");
  assert.fail(`${Math.round(share * 100)} % of ${file} differ. Compare with ${taken}; PHOTOS=update replaces it.`);
}

/** Runs in the page. Returns the share of the blocks of 16 by 16 pixels whose average colour differs. */
const DIFFERENCE = `
  async (...photos) => {
    const blocks = await Promise.all(photos.map(async (photo) => {
      const image = await createImageBitmap(await (await fetch("data:image/webp;base64," + photo)).blob());
      const canvas = new OffscreenCanvas(Math.ceil(image.width / 16), Math.ceil(image.height / 16));
      const context = canvas.getContext("2d");
      context.imageSmoothingQuality = "high";
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      return context.getImageData(0, 0, canvas.width, canvas.height).data;
    }));
    const [a, b] = blocks;
    if (a.length !== b.length) return 1;
    let different = 0;
    for (let i = 0; i < a.length; i += 4) {
      const by = Math.abs(a[i] - b[i]) + Math.abs(a[i + 1] - b[i + 1]) + Math.abs(a[i + 2] - b[i + 2]);
      if (by > 45) different += 1;
    }
    return (4 * different) / a.length;
  }`;
