import { readFileSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import type { Browser, BrowserContextOptions, Page, Route } from "playwright-core";
import type { Answers } from "./answers.ts";
import { HOUR, NOW } from "./clock.ts";
import { person } from "./people.ts";

const DIST = resolve(import.meta.dirname, "../../../console/dist");
const ORIGIN = "http://console.test";
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/**
 * Opens a page of the built console without a service: its calls get the given answers, and its clock stands still, so
 * that it looks the same each time.
 * @param path such as `/console/keys`
 * @param options `isPerson`: a person signs in through a provider, or has
 */
export async function openScene(
  browser: Browser,
  path: string,
  answers: Answers,
  options: BrowserContextOptions & { signedIn?: boolean; isPerson?: boolean } = {},
): Promise<Page> {
  const { signedIn = true, isPerson = false, ...rest } = options;
  const session = isPerson ? { ...SESSION, ...person } : SESSION;
  const context = await browser.newContext({ reducedMotion: "reduce", ...rest });
  await context.clock.setFixedTime(NOW);
  await context.route(`${ORIGIN}/**`, async (route) => {
    const { pathname } = new URL(route.request().url());
    if (/^\/console\/(operator\/)?session$/.test(pathname))
      await route.fulfill(
        signedIn ? { json: pathname.includes("operator") ? OPERATOR : session } : { status: 401, json: {} },
      );
    else if (pathname === "/console/sign-in/provider")
      await route.fulfill({ json: isPerson ? { provider: person.provider } : {} });
    else if (/\/rpc\//.test(pathname)) await answerCall(route, pathname.replace(/^.*\/rpc\//, ""), answers);
    else await sendFile(route, pathname.slice("/console".length));
  });
  const page = await context.newPage();
  await page.goto(`${ORIGIN}${path}`);
  return page;
}

const OPERATOR = { operator: "tok_9a01", expires_at: new Date(NOW + 8 * HOUR) };
const SESSION = { workspace: "acme", workspace_id: "ws_8f2k1m0q", expires_at: new Date(NOW + 8 * HOUR) };

async function sendFile(route: Route, path: string): Promise<void> {
  const page = /^\/operator(\/|$)/.test(path) ? "/operator.html" : "/index.html";
  const name = extname(path) === "" ? page : path;
  await route.fulfill({ body: readFileSync(join(DIST, name)), contentType: TYPES[extname(name)] ?? "text/plain" });
}

async function answerCall(route: Route, method: string, answers: Answers): Promise<void> {
  const body = route.request().postDataBuffer() ?? Buffer.from("{}");
  // The request of a stream has a header of five bytes.
  const text = body.toString("utf8").slice(body[0] === 0 ? 5 : 0);
  const answer = answers.get(method)?.(JSON.parse(text));
  if (answer === undefined) return;
  if ("unary" in answer) await route.fulfill({ json: answer.unary });
  else if ("stream" in answer)
    await fulfillStream(route, [...answer.stream.map((message) => frame(0, message)), frame(2, "{}")]);
  else if (method.endsWith("/StreamGenerate"))
    await fulfillStream(route, [frame(2, JSON.stringify({ error: answer.failure }))]);
  else await route.fulfill({ status: 503, json: answer.failure });
}

async function fulfillStream(route: Route, frames: Buffer[]): Promise<void> {
  await route.fulfill({ contentType: "application/connect+json", body: Buffer.concat(frames) });
}

/** A message of a stream in the Connect protocol. @param flags 2 for the end of the stream */
function frame(flags: number, text: string): Buffer {
  const data = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}
