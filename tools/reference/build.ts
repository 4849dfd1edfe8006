/**
 * Writes the files of `/docs` to `dist/reference`: the page and the script of Scalar, which is a single file, and the
 * documentation as pages of HTML with a search. The paths of the files are those below `/docs`, so the folder can also
 * be served as static files.
 */
import { copyFile, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { listOf, pageOf } from "./page.ts";
import { readGroups, readPages } from "./pages.ts";
import { searchIndex } from "./search.ts";

const ROOT = new URL("../../", import.meta.url);
const PACKAGES = new URL("node_modules/", ROOT);
const out = new URL("dist/reference/", ROOT);
const { version } = JSON.parse(await readFile(new URL("package.json", ROOT), "utf8"));

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
for (const name of ["start.js", "site.js", "site.css", "code.css"])
  await copyFile(new URL(name, import.meta.url), new URL(name, out));
const copies = [
  [new URL("LICENSE", ROOT), "license.txt"],
  [new URL("console/src/styles/tokens.css", ROOT), "tokens.css"],
  [new URL("@fontsource-variable/inter/files/inter-latin-wght-normal.woff2", PACKAGES), "inter.woff2"],
  [new URL("minisearch/dist/es/index.js", PACKAGES), "minisearch.js"],
] as const;
for (const [from, to] of copies) await copyFile(from, new URL(to, out));
await cp(new URL("docs/images/", ROOT), new URL("images/", out), { recursive: true });

const index = await readFile(new URL("index.html", import.meta.url), "utf8");
await writeFile(new URL("index.html", out), index.replace("VERSION", version));
const scalar = await readFile(new URL("@scalar/api-reference/dist/browser/standalone.js", PACKAGES));
await writeFile(new URL("reference.js", out), scalar);
// Reduces 4.4 MB to 1.3 MB.
const packed = await promisify(gzip)(scalar, { level: constants.Z_BEST_COMPRESSION });
await writeFile(new URL("reference.js.gz", out), packed);

const pages = await readPages();
const groups = await readGroups(pages);
for (const page of [listOf(groups), ...pages]) {
  const file = new URL(`${page.path}.html`, out);
  await mkdir(dirname(file.pathname), { recursive: true });
  await writeFile(file, pageOf(page, groups));
}
await writeFile(new URL("search.json", out), searchIndex(pages));
