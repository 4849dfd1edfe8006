import { freeChunk } from "./free-chunk.ts";

/** A size of the blocks, in bytes. */
const MIN_BLOCK = 16 * 1024;
const MAX_BLOCK = 1024 * 1024;

/** Collects a body as it arrives, in blocks that can move to a thread. A body of one chunk is not copied. */
export class Blocks {
  /** The only chunk so far. */
  #chunk: Uint8Array | undefined;
  readonly #blocks: Uint8Array<ArrayBuffer>[] = [];
  /** Free bytes at the end of the last block. */
  #free = 0;
  #size = 0;

  /** Bytes so far. */
  get size(): number {
    return this.#size;
  }

  /** Adds a chunk, which must not be used any more. */
  add(chunk: Uint8Array): void {
    // Copying empties the chunk.
    const { length } = chunk;
    if (this.#size === 0) this.#chunk = chunk;
    else {
      if (this.#chunk) this.#copy(this.#chunk);
      this.#chunk = undefined;
      this.#copy(chunk);
    }
    this.#size += length;
  }

  /** Takes the body, in blocks that each have a buffer alone. */
  take(): Uint8Array<ArrayBuffer>[] {
    if (this.#chunk) this.#copy(this.#chunk);
    this.#chunk = undefined;
    const blocks = this.#blocks.splice(0);
    const last = blocks.pop();
    if (last) blocks.push(last.subarray(0, last.length - this.#free));
    return blocks;
  }

  /** The body as one array; for small bodies. */
  join(): Uint8Array {
    return this.#chunk ?? Buffer.concat(this.take());
  }

  #copy(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#free === 0) {
        this.#free = Math.min(MAX_BLOCK, Math.max(MIN_BLOCK, this.#size, chunk.length));
        this.#blocks.push(new Uint8Array(Buffer.allocUnsafeSlow(this.#free).buffer as ArrayBuffer));
      }
      const block = this.#blocks.at(-1);
      if (!block) return;
      const part = chunk.subarray(at, at + this.#free);
      block.set(part, block.length - this.#free);
      this.#free -= part.length;
      at += part.length;
    }
    freeChunk(chunk);
  }
}
