/** A file that is written piece by piece. */
export interface OpenFile {
  write(text: string): Promise<void>;
  /** Ends the file, and starts its download unless it is on the disk already. */
  close(): Promise<void>;
  /** Discards what was written. */
  abort(): Promise<void>;
}

/** Pieces are collected until they have this many characters. */
const PIECE = 1_000_000;

/** How long a download stays available, in milliseconds: some browsers read it after the click has returned. */
const KEEP_MS = 60_000;

/** Downloads a file. */
export function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}

type SavePicker = (options: { suggestedName: string }) => Promise<FileSystemFileHandle>;

/**
 * Opens a file for text of any length. Where the browser lets a page write to the disk, it asks for the place, and
 * pieces go there at once. Elsewhere pieces become blobs, which browsers keep outside of the page's memory, and the
 * download starts at the end. Has to be called in the handler of a click.
 * @returns undefined if the user has cancelled
 */
export async function openFile(name: string, type: string): Promise<OpenFile | undefined> {
  const { showSaveFilePicker } = window as { showSaveFilePicker?: SavePicker };
  if (showSaveFilePicker === undefined) return collected(blobFile(name, type));
  const handle = await showSaveFilePicker({ suggestedName: name }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") return undefined;
    throw error;
  });
  return handle && collected(await handle.createWritable());
}

type Sink = Pick<FileSystemWritableFileStream, "abort" | "close"> & { write(text: string): Promise<void> };

/** Joins short pieces, because each write has a cost of its own. */
function collected(sink: Sink): OpenFile {
  let waiting: string[] = [];
  let length = 0;
  const flush = async () => {
    const text = waiting.join("");
    waiting = [];
    length = 0;
    if (text !== "") await sink.write(text);
  };
  return {
    async write(text) {
      waiting.push(text);
      length += text.length;
      if (length >= PIECE) await flush();
    },
    async close() {
      await flush();
      await sink.close();
    },
    abort: () => sink.abort(),
  };
}

function blobFile(name: string, type: string): Sink {
  const blobs: Blob[] = [];
  return {
    async write(text) {
      blobs.push(new Blob([text]));
    },
    async close() {
      download(name, new Blob(blobs, { type }));
    },
    async abort() {
      blobs.length = 0;
    },
  };
}
