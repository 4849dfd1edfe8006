import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";

/** Lines of a journal for which nothing is charged: those that are no intact entry, and refused ones. */
export interface SetAside {
  readonly damaged: number;
  readonly refused: number;
}

/**
 * Counts the lines of the files `damaged` and `refused`. Other processes add to them, and an operator deletes them, so
 * each time that a figure is read, its file is looked at again, and the next one to read it gets what was found.
 * @returns also `look`, which resolves when the figures are those of the files
 */
export async function countSetAside(folder: string): Promise<{ setAside: SetAside; look: () => Promise<void> }> {
  const damaged = new LineCount(join(folder, "damaged"));
  const refused = new LineCount(join(folder, "refused"));
  const look = async () => {
    await Promise.all([damaged.look(), refused.look()]);
  };
  await look();
  const setAside = {
    get damaged() {
      return damaged.read();
    },
    get refused() {
      return refused.read();
    },
  };
  return { setAside, look };
}

class LineCount {
  readonly #path: string;
  #lines = 0;
  /** What tells apart the file from itself before a change; empty: there is none. */
  #version = "";

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the number at the last look, and looks again. */
  read(): number {
    void this.look();
    return this.#lines;
  }

  async look(): Promise<void> {
    const file = await stat(this.#path).catch(() => undefined);
    const version = file ? `${file.ino} ${file.size} ${file.mtimeMs}` : "";
    if (version === this.#version) return;
    this.#lines = await linesIn(this.#path);
    this.#version = version;
  }
}

/** Number of lines of a file; 0 when there is none or it cannot be read. */
async function linesIn(path: string): Promise<number> {
  const bytes = await readFile(path).catch(() => Buffer.alloc(0));
  return bytes.reduce((count, byte) => count + Number(byte === 10), 0);
}
