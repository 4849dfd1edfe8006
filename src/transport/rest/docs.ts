import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { Failure } from "../../failure.ts";
import { loadFiles, type StaticFile, sendFile } from "../static-files.ts";

/** What `buf generate` and `npm run build:reference` write. */
const DOCUMENT = fileURLToPath(new URL("../../../gen/openapi/", import.meta.url));
const PAGE = fileURLToPath(new URL("../../../dist/reference/", import.meta.url));

/** Scripts come from here alone. Scalar writes its own style elements, so styles may be inline; nothing may be sent elsewhere. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * The API reference by path: the OpenAPI document, the page that shows it and the page's scripts. They are read when they are first asked
 * for, which takes 20 ms once, and kept: 6 MB.
 */
export function createDocs(): ReadonlyMap<string, Serve> {
  let document: ReadonlyMap<string, StaticFile> | undefined;
  let page: ReadonlyMap<string, StaticFile> | undefined;

  function send(name: string, headers: Readonly<Record<string, string>> = {}): Serve {
    return (request, response) => {
      document ??= loadFiles(DOCUMENT);
      page ??= loadFiles(PAGE);
      const file = document.get(name) ?? page.get(name);
      if (!file) {
        throw new Failure("not_found", {
          message: 'The page is not built here. "npm run build" builds it; then start again.',
        });
      }
      for (const [header, value] of Object.entries(headers)) response.setHeader(header, value);
      response.setHeader("X-Content-Type-Options", "nosniff");
      sendFile(request, response, file, "no-cache");
    };
  }

  return new Map([
    // Tools in browsers may read it as well; it is no secret.
    ["/openapi.json", send("/openapi.json", { "Access-Control-Allow-Origin": "*" })],
    ["/docs", send("/index.html", { "Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer" })],
    ["/docs/start.js", send("/start.js")],
    ["/docs/reference.js", send("/reference.js")],
  ]);
}
