/**
 * Writes the character maps of pdf.js to src/engine/attachments/cmaps/cmaps.bin: `node tools/pack-cmaps.ts FOLDER`,
 * after an update of `unpdf`. The folder is `cmaps` of the version of `pdfjs-dist` that `unpdf` contains. The file is
 * compressed with Brotli: a line of JSON with the names and lengths of the maps, then their bytes.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const folder = process.argv[2] ?? "cmaps";
const names = readdirSync(folder).filter((name) => name.endsWith(".bcmap"));
const maps = names.map((name) => readFileSync(join(folder, name)));
const index = names.map((name, i) => [name, maps[i]?.length]);
const all = Buffer.concat([Buffer.from(`${JSON.stringify(index)}\n`), ...maps]);
const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: all.length };
const path = resolve(import.meta.dirname, "../src/engine/attachments/cmaps/cmaps.bin");
writeFileSync(path, brotliCompressSync(all, { params }));
