import { extname } from "node:path";
import type { Signal } from "../../concurrency/abort.ts";
import { ownBytes } from "../../concurrency/worker-job.ts";
import { WORKER_THREADS, WorkerPool, type WorkerPoolOptions, weightOf } from "../../concurrency/worker-pool.ts";
import { Failure } from "../../contract/failure.ts";
import { type Attachment, type AttachmentNotice, fileFailure, Unreadable } from "./attachment.ts";
import { identifyImage, imageTokens } from "./image.ts";
import { mismatch } from "./media-type.ts";
import type { Job, Result } from "./worker.ts";

/** How much of the prompt the files of a request may take. */
export interface Budget {
  /** The user's question, to which the passages of a shortened file must be relevant. */
  question: string;
  /** Most tokens of all files together; below 1 files get none. */
  tokens: number;
  /** Name of the field that has the prompt, for a failure. */
  promptField: string;
  /** The workspace of the request. Only one of its requests with large files is read at a time. */
  owner: string;
}

interface ReadText extends Pick<Attachment, "name" | "at"> {
  /** Empty if the file has no text. */
  text: string;
  /** Tokens of `text`. */
  tokens: number;
}

/** `data` has the caller's bytes, unchanged. */
interface ReadImage extends Attachment {
  tokens: number;
}

/** The content of a request's files, each kind in the order of the request. */
export interface ReadFiles {
  texts: ReadText[];
  images: ReadImage[];
  /** One for each part that was left out. */
  notices: AttachmentNotice[];
}

export interface Reader {
  /**
   * Reads the files of one request and shortens them to the budget. Images are checked on this thread, which takes
   * microseconds; a worker thread reads all other files. A file that is alone in its buffer is empty afterwards,
   * because the buffer moves to the thread; other files must not change meanwhile.
   * @throws Failure invalid_request naming `attachments[i].data` or `attachments[i].media_type`; `request_too_long`
   *   when the images do not fit; `overloaded` while too many files are waiting and after `close`; the reason of
   *   `signal` when it aborts
   */
  read(files: readonly Attachment[], budget: Budget, signal: Signal): Promise<ReadFiles>;
  /** Ends the threads. Files that are being read fail. */
  close(): Promise<void>;
}

/** Types that can take long to read, whatever their size. */
const HEAVY = /^application\/(pdf|vnd\.)/;

const DEFAULTS: WorkerPoolOptions = {
  threads: WORKER_THREADS,
  milliseconds: 10_000,
  memory: 384 * 1024 * 1024,
  waiting: 64,
  waitingBytes: 2 * 67_108_864,
  // The package of the service has JavaScript.
  script: new URL(`./worker${extname(import.meta.url)}`, import.meta.url),
  exceeded: (limit, index) =>
    limit === "time"
      ? fileFailure(index, "data", "takes too long to read. Send a smaller or simpler file.")
      : fileFailure(index, "data", "needs too much memory to read. Send a smaller or simpler file."),
};

/** Create one per process. The threads start with the first file. */
export function createReader(options: Partial<WorkerPoolOptions> = {}): Reader {
  const settings = { ...DEFAULTS, ...options };
  const pool = new WorkerPool<Job, Result>(settings);
  return {
    read: async (files, budget, signal) => {
      const images: ReadImage[] = [];
      const documents: Array<Pick<Attachment, "mediaType" | "data"> & { index: number }> = [];
      for (const [index, file] of files.entries()) {
        const mediaType = essence(file.mediaType);
        if (mediaType.startsWith("image/")) images.push(await readImage(file, mediaType, index));
        else documents.push({ index, mediaType, data: file.data });
      }
      const tokens = images.reduce((left, image) => left - image.tokens, budget.tokens);
      if (images.length > 0 && tokens < 0) throw tooLong(budget.promptField);
      if (documents.length === 0) return { texts: [], images, notices: [] };
      const bytes = documents.reduce((sum, { data }) => sum + data.length, 0);
      const weight = documents.some(({ mediaType }) => HEAVY.test(mediaType)) ? "heavy" : weightOf(bytes);
      const job: Job = {
        files: documents.map((file) => ({ ...file, data: ownBytes(file.data) })),
        question: budget.question,
        tokens: Math.max(0, tokens),
        milliseconds: settings.milliseconds,
      };
      const transfer = job.files.map(({ data }) => data.buffer);
      const { texts, notices } = await pool.run({ job, transfer, bytes, weight, signal, owner: budget.owner });
      return {
        texts: texts.map(({ index, ...read }) => ({ name: files[index]?.name ?? "", at: files[index]?.at, ...read })),
        images,
        notices,
      };
    },
    close: () => pool.close(),
  };
}

function tooLong(field: string): Failure {
  const message =
    "The images do not fit into the context window of any model beside the prompt. Send fewer, or a shorter prompt.";
  return new Failure("request_too_long", { field, message });
}

/** A media type without parameters such as the charset, which must be UTF-8. Many programs write `image/jpg`. */
export function essence(mediaType: string): string {
  const type = mediaType.replace(/;.*/s, "").trim().toLowerCase();
  return type === "image/jpg" ? "image/jpeg" : type;
}

async function readImage(file: Attachment, declared: string, index: number): Promise<ReadImage> {
  try {
    const found = identifyImage(file.data);
    if (!found) throw await mismatch(declared, file.data);
    return { ...file, mediaType: found.mediaType, tokens: imageTokens(found.size) };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    throw fileFailure(index, error.part, error.message);
  }
}
