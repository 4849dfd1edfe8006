import { parentPort } from "node:worker_threads";
import { Encoding } from "../bpe.ts";
import { type AttachmentNotice, type Part, Unreadable } from "./attachment.ts";
import { readDocx } from "./docx.ts";
import { type Fitted, fit } from "./fit.ts";
import { htmlToText } from "./html.ts";
import { mismatch } from "./media-type.ts";
import { type PdfText, readPdf } from "./pdf.ts";
import { readPlainText } from "./plain-text.ts";

export interface Job {
  files: Array<{ index: number; mediaType: string; data: Uint8Array }>;
  question: string;
  /** Most tokens of all the texts together. */
  tokens: number;
  /** Most time for one file; the fitting has as much. */
  milliseconds: number;
}

export interface Result {
  texts: Array<{ index: number; text: string; tokens: number }>;
  notices: AttachmentNotice[];
}

/** What the worker tells about its one job: the file that it reads now (none: it fits the texts), and how it ended. */
export type Report =
  | { kind: "reading"; index: number | undefined }
  | { kind: "done"; result: Result }
  | { kind: "unreadable"; index: number; part: Part; message: string };

const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/** Share of a file's time after which a PDF's further pages are left out, so that what was read is not lost. */
const PDF_SHARE = 0.7;

// 0.13 s, so only once a file is there.
let encoding: Encoding | undefined;

parentPort?.on("message", (job: Job) => {
  // What is thrown here is no fault of a file; it ends the thread, and the pool sees why.
  void run(job);
});

async function run(job: Job): Promise<void> {
  const notices: AttachmentNotice[] = [];
  const texts: Array<{ index: number; text: string }> = [];
  for (const file of job.files) {
    report({ kind: "reading", index: file.index });
    try {
      const text = await read(file.mediaType, file.data, `attachments[${file.index}]`, notices, job.milliseconds);
      texts.push({ index: file.index, text });
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      report({ kind: "unreadable", index: file.index, part: error.part, message: error.message });
      return;
    }
    // A large file's bytes are not kept beside its text.
    file.data = new Uint8Array();
  }
  report({ kind: "reading", index: undefined });
  encoding ??= new Encoding();
  const fitted = fit(
    texts.map(({ text }) => text),
    job.question,
    job.tokens,
    encoding,
  );
  for (const [i, { index, text }] of texts.entries())
    notices.push(...shortened(`attachments[${index}]`, text, fitted[i]));
  report({
    kind: "done",
    result: {
      texts: texts.map(({ index }, i) => ({ index, text: fitted[i]?.text ?? "", tokens: fitted[i]?.tokens ?? 0 })),
      notices,
    },
  });
}

async function read(
  type: string,
  data: Uint8Array,
  field: string,
  notices: AttachmentNotice[],
  milliseconds: number,
): Promise<string> {
  let text: string | undefined;
  if (type === "application/pdf") {
    const pdf = await readPdf(data, performance.now() + milliseconds * PDF_SHARE);
    if (pdf) notices.push(...aboutPages(field, pdf));
    text = pdf?.text;
  } else if (type === DOCX) {
    text = await readDocx(data);
  } else {
    text = await readPlainText(data);
    if (text !== undefined && type === "text/html") text = htmlToText(text);
  }
  if (text === undefined) throw await mismatch(type, data);
  // Looks no further than the first character that is no white space.
  if (!/\S/.test(text)) {
    text = "";
    const message = `${field} holds no text that can be read; a scan must be sent as an image.`;
    notices.push({ code: "attachment_without_text", message, field });
  }
  return text;
}

function aboutPages(field: string, { text, read, pages, empty }: PdfText): AttachmentNotice[] {
  const notices: AttachmentNotice[] = [];
  if (read < pages) {
    const message = `${read} of the ${pages} pages of ${field} were read; the others are too many, too slow or damaged.`;
    notices.push({ code: "attachment_pages_left_out", message, field });
  }
  if (empty > 0 && text !== "") {
    const message = `${empty} of the ${pages} pages of ${field} hold no text that can be read; a scan must be sent as an image.`;
    notices.push({ code: "attachment_without_text", message, field });
  }
  return notices;
}

function shortened(field: string, text: string, fitted: Fitted | undefined): AttachmentNotice[] {
  if (!fitted || fitted.kept === text.length) return [];
  const message =
    `${field} is too long to be read whole: its beginning and the parts nearest to the question were read, ` +
    `${fitted.kept} of ${text.length} characters.`;
  return [{ code: "attachments_shortened", message, field }];
}

function report(message: Report): void {
  parentPort?.postMessage(message);
}
