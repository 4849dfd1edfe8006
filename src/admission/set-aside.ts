import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";

/** Lines of a journal for which nothing is charged: those that are no intact entry, and refused ones. */
export interface SetAside {
  readonly damaged: number;
  readonly refused: number;
}

/**
 * Counts the lines of the files `damaged` and `refused`. Other processes add to them, and an operator deletes them.
 * @returns `look`, which resolves when the figures are those of the files; and `setAside`, which returns the figures of
 *   the last look, and looks again for the next one to ask
 */
export async function countSetAside(folder: string): Promise<{ setAside(): SetAside; look(): Promise<void> }> {
  const damaged = new LineCount(join(folder, "damaged"));
  const refused = new LineCount(join(folder, "refused"));
  const look = async () => {
    await Promise.all([damaged.look(), refused.look()]);
  };
  await look();
  const setAside = () => {
    void look();
    return { damaged: damaged.lines, refused: refused.lines };
  };
  return { setAside, look };
}

/** A file as it was when its lines were counted. */
interface Counted {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly lines: number;
}

/** There is no file, or it cannot be read. */
const NOTHING: Counted = { ino: 0, size: 0, mtimeMs: 0, lines: 0 };

class LineCount {
  readonly #path: string;
  #counted = NOTHING;

  constructor(path: string) {
    this.#path = path;
  }

  /** Number at the last look. */
  get lines(): number {
    return this.#counted.lines;
  }

  /** Reads only what was added, because the file can be large and each line that is added is counted. */
  async look(): Promise<void> {
    const known = this.#counted;
    const { ino, size, mtimeMs } = await stat(this.#path).catch(() => NOTHING);
    if (ino === known.ino && size === known.size && mtimeMs === known.mtimeMs) return;
    const from = ino === known.ino && size > known.size ? known : NOTHING;
    const added = await linesIn(this.#path, from.size, size).catch(() => undefined);
    this.#counted = added === undefined ? NOTHING : { ino, size, mtimeMs, lines: from.lines + added };
  }
}

/** Number of lines that end in a part of a file. */
async function linesIn(path: string, start: number, end: number): Promise<number> {
  let lines = 0;
  if (start === end) return lines;
  const parts: AsyncIterable<Buffer> = createReadStream(path, { start, end: end - 1 });
  for await (const bytes of parts) {
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines += 1;
  }
  return lines;
}
