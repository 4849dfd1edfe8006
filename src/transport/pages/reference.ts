import { existsSync, readdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Failure } from "../../contract/failure.ts";
import { loadFiles, type StaticFile, sendFile } from "./static-files.ts";

/** Folders that `buf generate` and `npm run build:reference` write. */
const DOCUMENT = fileURLToPath(new URL("../../../gen/openapi/", import.meta.url));
const PAGE = fileURLToPath(new URL("../../../dist/reference/", import.meta.url));

/**
 * Allows scripts and requests only from and to this server. Scalar inserts style elements, which need inline styles.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
  "font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function guideNames(): string[] {
  const folder = new URL("guides/", pathToFileURL(PAGE));
  return existsSync(folder) ? readdirSync(folder).map((file) => file.replace(/\.html$/, "")) : [];
}

type Send = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Serves the API reference: the OpenAPI document, the page that shows it, and its scripts. The files are loaded at the
 * first request, because most processes never serve them and they take several megabytes.
 * @returns functions by path; they throw Failure not_found when the page is not built
 */
export function createDocs(): ReadonlyMap<string, Send> {
  let document: ReadonlyMap<string, StaticFile> | undefined;
  let page: ReadonlyMap<string, StaticFile> | undefined;

  function send(name: string, headers: Readonly<Record<string, string>> = {}): Send {
    return (request, response) => {
      document ??= loadFiles(DOCUMENT);
      page ??= loadFiles(PAGE);
      const file = document.get(name) ?? page.get(name);
      if (!file) {
        throw new Failure("not_found", {
          message: 'The page is not built. Run "npm run build", then start the service again.',
        });
      }
      for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
      response.setHeader("X-Content-Type-Options", "nosniff");
      sendFile(request, response, file, "no-cache");
    };
  }

  const pages = { "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer" };
  return new Map([
    // The document is public, so pages of other sites may read it too.
    ["/openapi.json", send("/openapi.json", { "Access-Control-Allow-Origin": "*" })],
    ["/docs", send("/index.html", pages)],
    ["/docs/guides", send("/guides.html", pages)],
    ...guideNames().map((name): [string, Send] => [`/docs/guides/${name}`, send(`/guides/${name}.html`, pages)]),
    ["/docs/guides.css", send("/guides.css")],
    ["/docs/license", send("/license.txt")],
    ["/docs/start.js", send("/start.js")],
    ["/docs/reference.js", send("/reference.js")],
  ]);
}
