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

/** Gets what a decompressor makes. */
interface Sink {
  data(chunk: Buffer): void;
  end(): void;
  /** More may be written after `write` has returned false. */
  drain(): void;
  /** The bytes are not of this compression, or end too early. */
  error(cause: Error): void;
}

/**
 * A stream that decompresses a body while it arrives. It decompresses off the event loop, up to 16 KiB at a time, and
 * nothing while it is paused, so a small body that expands to a huge one takes no memory.
 * @param encoding the value of `Content-Encoding`
 * @returns undefined if the encoding is unknown
 */
export function createDecompressor(encoding: string, { data, end, drain, error }: Sink): Transform | undefined {
  const name = encoding.trim().toLowerCase();
  if (!Object.hasOwn(DECOMPRESSORS, name)) return undefined;
  return DECOMPRESSORS[name]?.().on("data", data).on("end", end).on("drain", drain).on("error", error);
}
