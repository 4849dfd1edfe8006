/**
 * Writes the files of `/docs` to `dist/reference`: the page and the script of Scalar, which is a single file, and the
 * guides as pages of HTML.
 */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { pageOf, readGuides } from "./guides.ts";

const scalar = new URL("../../node_modules/@scalar/api-reference/dist/browser/standalone.js", import.meta.url);
const out = new URL("../../dist/reference/", import.meta.url);
const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));

await mkdir(new URL("guides/", out), { recursive: true });
for (const name of ["start.js", "guides.css"]) await copyFile(new URL(name, import.meta.url), new URL(name, out));
const index = await readFile(new URL("index.html", import.meta.url), "utf8");
await writeFile(new URL("index.html", out), index.replace("VERSION", version));
await copyFile(new URL("../../LICENSE", import.meta.url), new URL("license.txt", out));
await copyFile(scalar, new URL("reference.js", out));
// Reduces 4.4 MB to 1.3 MB.
const packed = await promisify(gzip)(await readFile(scalar), { level: constants.Z_BEST_COMPRESSION });
await writeFile(new URL("reference.js.gz", out), packed);

const guides = await readGuides();
const list = guides.map(({ name, title }) => `<li><a href="guides/${name}">${title}</a></li>`).join("\n");
await writeFile(new URL("guides.html", out), pageOf("Guides", `<h1>Guides</h1>\n<ul>\n${list}\n</ul>`));
for (const { name, title, html } of guides) await writeFile(new URL(`guides/${name}.html`, out), pageOf(title, html));
