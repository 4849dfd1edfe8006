import { Failure } from "../../contract/failure.ts";
import type { Call } from "../call/call.ts";
import { endIfStalled } from "../call/write.ts";
import { loadFiles, type StaticFile, sendFile } from "../pages/static-files.ts";

const NOT_BUILT = [
  "<!doctype html>",
  '<html lang="en"><head><meta charset="utf-8"><title>Chorus console</title></head>',
  "<body><h1>The console is not built</h1>" +
    "<p>Run <code>npm run prepare</code> in the folder of the service, then start the service again.</p></body></html>",
  "",
].join("\n");

/** Sends the page or file at a path, such as `/assets/main.js`. @throws Failure not_found */
type SendPage = (path: string, call: Pick<Call, "request" | "response">) => void;

/**
 * Serves the built console. Its files are loaded at the first request, because most processes never serve them.
 * @param folder what `npm run build:console` writes; without it every page says that the console is not built
 * @param stallMs time after which a reader that takes nothing is disconnected, in milliseconds
 */
export function createPages(folder: string, stallMs: number): SendPage {
  let files: ReadonlyMap<string, StaticFile> | undefined;

  return (path, { request, response }) => {
    files ??= loadFiles(folder);
    const found = files.get(path);
    // Paths without a dot belong to the page, which has its own router, and so do those of workspaces: names have dots.
    if (!found && /^\/assets\/|^(?!\/operator\/workspaces\/).*\./.test(path)) throw new Failure("not_found");
    const page = files.get(/^\/operator(\/|$)/.test(path) ? "/operator.html" : "/index.html");
    const file = found ?? page;
    if (file) {
      const isHashed = path.startsWith("/assets/");
      const caching = isHashed ? "public, max-age=31536000, immutable" : file === page ? "no-store" : "no-cache";
      sendFile(request, response, file, caching);
      endIfStalled(response, stallMs);
      return;
    }
    response.writeHead(404, { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
    response.end(NOT_BUILT);
  };
}
