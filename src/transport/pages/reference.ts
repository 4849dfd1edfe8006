import { existsSync, readdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
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

/** The files of the page by their paths below `/docs`: pages and texts without their extension, all others with it. */
function filesOfPage(): [path: string, name: string][] {
  if (!existsSync(PAGE)) return [];
  return readdirSync(PAGE, { recursive: true, encoding: "utf8" })
    .map((file) => `/${file.split(sep).join("/")}`)
    .filter((name) => /\.(?!gz$)\w+$/.test(name))
    .map((name) => [`/docs${name.replace(/^\/index\.html$|\.(?:html|txt)$/, "")}`, name]);
}

type Send = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Serves the OpenAPI document, the page that shows it, and the documentation. The files are loaded at the first
 * request, because most processes never serve them and they take several megabytes.
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
    // Without the build, this page says what to do.
    ["/docs", send("/index.html", pages)],
    ...filesOfPage().map(([path, name]): [string, Send] => [path, send(name, name.endsWith(".html") ? pages : {})]),
  ]);
}
