import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";

/** The maps by name, such as `UniJIS-UCS2-H.bcmap`. Read with the first PDF that needs one, which takes 10 ms. */
let maps: ReadonlyMap<string, Uint8Array> | undefined;

/** @see tools/pack-cmaps.ts for the file */
function readMaps(): ReadonlyMap<string, Uint8Array> {
  const all = brotliDecompressSync(readFileSync(new URL("./cmaps/cmaps.bin", import.meta.url)));
  const end = all.indexOf("\n") + 1;
  const index: [name: string, length: number][] = JSON.parse(all.toString("utf8", 0, end));
  const found = new Map<string, Uint8Array>();
  let at = end;
  for (const [name, length] of index) {
    found.set(name, all.subarray(at, at + length));
    at += length;
  }
  return found;
}

/**
 * Gives pdf.js the character maps of Chinese, Japanese and Korean. Many PDFs in these languages name a map that every
 * reader has, instead of containing one.
 */
export class CharacterMaps {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    maps ??= readMaps();
    const map = kind === "cMapUrl" ? maps.get(filename) : undefined;
    if (!map) throw new Error("there is no such file");
    // pdf.js clones the whole buffer of what it gets, and may transfer it. `slice` of a Buffer would share the buffer.
    return new Uint8Array(map);
  }
}
