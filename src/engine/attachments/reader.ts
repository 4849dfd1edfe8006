import { invalid } from "../../failure.ts";
import { type Attachment, type AttachmentNotice, Unreadable } from "./attachment.ts";
import { imageSize, imageTokens } from "./image.ts";
import { mismatch } from "./media-type.ts";
import { WorkerPool, type WorkerPoolOptions } from "./worker-pool.ts";

/** What the files of a request may take up in the prompt. */
export interface Budget {
  /** What the caller asks, by which the parts of a file that is too long are chosen. */
  question: string;
  /** Most tokens of all files together; none below 1. */
  tokens: number;
  /** Whose request it is: while one file of an owner that may take long is being read, the next one of the same owner waits. */
  owner: string;
}

export interface ReadText {
  name: string;
  /** Empty where a file holds no text. */
  text: string;
  /** Tokens of `text`. */
  tokens: number;
}

export interface ReadImage {
  name: string;
  mediaType: string;
  /** The caller's bytes, untouched. */
  data: Uint8Array;
  tokens: number;
}

/** What a request's files come to; each kind in the order of the request. */
export interface Read {
  texts: ReadText[];
  images: ReadImage[];
  /** Everything that was left out. */
  notices: AttachmentNotice[];
}

export interface Reader {
  /**
   * Reads the files of one request and makes them fit into the budget. Images are checked here, in microseconds; all else is read in a
   * worker thread, the handing over of 64 MB takes 40 ms here. A file's data must not change meanwhile.
   * @throws Failure invalid_request naming `attachments[i].data` or `attachments[i].media_type`; `overloaded` while too many files are
   * waiting and after `close`; the reason of `signal` once that has aborted
   */
  read(files: readonly Attachment[], budget: Budget, signal: AbortSignal): Promise<Read>;
  /** Ends the threads; what is being read is refused. */
  close(): Promise<void>;
}

/** Types and sizes whose reading may take long. */
const HEAVY = /^application\/(pdf|vnd\.)/;
const HEAVY_BYTES = 1024 * 1024;

const DEFAULTS: WorkerPoolOptions = {
  threads: 3,
  milliseconds: 10_000,
  memory: 384 * 1024 * 1024,
  waiting: 64,
  waitingBytes: 2 * 67_108_864,
  script: new URL("./worker.ts", import.meta.url),
};

/** Makes a reader; one per process. Its threads start with the first file. */
export function createReader(options: Partial<WorkerPoolOptions> = {}): Reader {
  const pool = new WorkerPool({ ...DEFAULTS, ...options });
  return {
    read: async (files, budget, signal) => {
      const images: ReadImage[] = [];
      const documents: Array<{ index: number; mediaType: string; data: Uint8Array }> = [];
      for (const [index, file] of files.entries()) {
        const mediaType = essence(file.mediaType);
        if (mediaType.startsWith("image/")) images.push(await readImage(file, mediaType, index));
        else documents.push({ index, mediaType, data: file.data });
      }
      const tokens = images.reduce((left, image) => left - image.tokens, budget.tokens);
      if (images.length > 0 && tokens < 0)
        throw invalid(
          "attachments",
          "attachments hold more images than there is room for beside the prompt. Send fewer.",
        );
      if (documents.length === 0) return { texts: [], images, notices: [] };
      const heavy = documents.some(({ mediaType, data }) => HEAVY.test(mediaType) || data.length > HEAVY_BYTES);
      const job = { files: documents, question: budget.question, tokens: Math.max(0, tokens) };
      const { texts, notices } = await pool.run({ job, heavy, signal, owner: budget.owner });
      return {
        texts: texts.map(({ index, ...read }) => ({ name: files[index]?.name ?? "", ...read })),
        images,
        notices,
      };
    },
    close: () => pool.close(),
  };
}

/** A media type without its parameters, such as the charset, which is always UTF-8 here. */
export function essence(mediaType: string): string {
  return mediaType.replace(/;.*/s, "").trim().toLowerCase();
}

async function readImage(file: Attachment, mediaType: string, index: number): Promise<ReadImage> {
  try {
    const size = imageSize(mediaType, file.data);
    if (!size) throw await mismatch(mediaType, file.data);
    return { name: file.name, mediaType, data: file.data, tokens: imageTokens(size) };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const field = `attachments[${index}].${error.part}`;
    throw invalid(field, `${field} ${error.message}`);
  }
}
