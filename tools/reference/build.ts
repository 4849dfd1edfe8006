/** Writes the files of `/docs` to `dist/reference`: the page and the script of Scalar, which is a single file. */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";

const scalar = new URL("../../node_modules/@scalar/api-reference/dist/browser/standalone.js", import.meta.url);
const out = new URL("../../dist/reference/", import.meta.url);

await mkdir(out, { recursive: true });
for (const name of ["index.html", "start.js"]) await copyFile(new URL(name, import.meta.url), new URL(name, out));
await copyFile(scalar, new URL("reference.js", out));
// Reduces 4.4 MB to 1.3 MB.
const packed = await promisify(gzip)(await readFile(scalar), { level: constants.Z_BEST_COMPRESSION });
await writeFile(new URL("reference.js.gz", out), packed);
