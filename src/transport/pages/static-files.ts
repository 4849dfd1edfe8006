import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";

/** A file in memory, with its compressed forms. */
export interface StaticFile {
  readonly type: string;
  readonly etag: string;
  readonly identity: Buffer;
  readonly gzip: Buffer | undefined;
  readonly br: Buffer | undefined;
}

/** Media types by extension. Others are `application/octet-stream`. */
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
};

/** Most bytes of one folder. */
const MAX_BYTES = 32 * 1024 * 1024;

/**
 * Reads all files below a folder into memory. Requests therefore cannot reach a file outside of the folder. `name.br`
 * and `name.gz` become compressed forms of `name`; text without a `.gz` file is compressed here.
 * @returns files by path below the folder, such as `/assets/main.js`; empty when the folder does not exist
 * @throws Error when the files are larger than 32 MB together
 */
export function loadFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const bodies = new Map<string, Buffer>();
  let bytes = 0;
  for (const path of filesBelow(folder)) {
    bytes += statSync(path).size;
    if (bytes > MAX_BYTES)
      throw new Error(`${folder} has more than ${MAX_BYTES} bytes. Remove files that do not belong there.`);
    bodies.set(`/${relative(folder, path).split(sep).join("/")}`, readFileSync(path));
  }
  const files = new Map<string, StaticFile>();
  for (const [path, identity] of bodies) {
    if (/\.(br|gz)$/.test(path) && bodies.has(path.slice(0, -3))) continue;
    const type = TYPES[extname(path)] ?? "application/octet-stream";
    const isText = /^text|json|svg/.test(type);
    files.set(path, {
      type,
      etag: `"${createHash("sha256").update(identity).digest("base64url").slice(0, 22)}"`,
      identity,
      gzip: bodies.get(`${path}.gz`) ?? (isText ? gzipSync(identity) : undefined),
      br: bodies.get(`${path}.br`),
    });
  }
  return files;
}

/** Sends a file in the best encoding that the caller accepts, or 304 when the caller has it. Serves GET and HEAD. */
export function sendFile(
  { headers }: IncomingMessage,
  response: ServerResponse,
  file: StaticFile,
  cacheControl: string,
): void {
  const accepted = encodings(headers["accept-encoding"]);
  const encoding = file.br && accepted.has("br") ? "br" : file.gzip && accepted.has("gzip") ? "gzip" : undefined;
  const body = file[encoding ?? "identity"] ?? file.identity;
  // Each encoding has a different tag (RFC 9110, section 8.8.3).
  const etag = encoding ? `${file.etag.slice(0, -1)}-${encoding}"` : file.etag;
  const common = { "Cache-Control": cacheControl, ETag: etag, Vary: "Accept-Encoding" };
  const known = (headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(etag)) {
    response.writeHead(304, common).end();
    return;
  }
  response.writeHead(200, {
    ...common,
    "Content-Type": file.type,
    "Content-Length": body.length,
    ...(encoding ? { "Content-Encoding": encoding } : {}),
  });
  response.end(body);
}

/** Content codings that the caller accepts. A coding with q=0 is not accepted (RFC 9110, section 12.5.3). */
function encodings(header = ""): ReadonlySet<string> {
  const items = header.toLowerCase().split(",");
  return new Set(
    items.flatMap((item) => {
      const [coding = "", weight = ""] = item.split(";");
      return /^\s*q=0(\.0*)?\s*$/.test(weight) ? [] : [coding.trim()];
    }),
  );
}

/** Regular files only: symbolic links could lead out of the folder. */
function filesBelow(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
