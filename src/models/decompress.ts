import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createUnzip, createZstdDecompress } from "node:zlib";

const unzip = () => createUnzip({ flush: constants.Z_SYNC_FLUSH });

/** By the names of `Content-Encoding`. */
const DECOMPRESSORS: Readonly<Record<string, () => Transform>> = {
  gzip: unzip,
  "x-gzip": unzip,
  deflate: unzip,
  br: () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: createZstdDecompress,
};

/**
 * A stream that decompresses a body while it arrives. It decompresses off the event loop, up to 16 KiB at a time, and
 * nothing while it is paused, so a small body that expands to a huge one takes no memory.
 * @param encoding the value of `Content-Encoding`
 * @returns undefined if the encoding is unknown
 */
export function createDecompressor(encoding: string): Transform | undefined {
  const name = encoding.trim().toLowerCase();
  return Object.hasOwn(DECOMPRESSORS, name) ? DECOMPRESSORS[name]?.() : undefined;
}
