import { serveJobs } from "../../concurrency/worker-job.ts";
import { Encoding } from "../tokens/bpe.ts";
import { type AttachmentNotice, fileFailure, Unreadable } from "./attachment.ts";
import { readDocx } from "./docx.ts";
import { type Fitted, fitTexts } from "./fit.ts";
import { htmlToText } from "./html.ts";
import { mismatch } from "./media-type.ts";
import { type PdfText, readPdf } from "./pdf.ts";
import { readPlainText } from "./plain-text.ts";

export interface Job {
  files: Array<{ index: number; mediaType: string; data: Uint8Array<ArrayBuffer> }>;
  question: string;
  /** Most tokens of all texts together. */
  tokens: number;
  /** Most processor time for each file, and for fitting the texts to the budget. */
  milliseconds: number;
}

export interface Result {
  texts: Array<{ index: number; text: string; tokens: number }>;
  notices: AttachmentNotice[];
}

const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/** Share of a file's processor time after which a PDF's remaining pages are left out, to keep those already read. */
const PDF_SHARE = 0.7;

// Created with the first job, because it takes 0.05 s.
let encoding: Encoding | undefined;

serveJobs<Job, Result>(async (job, begin) => {
  const notices: AttachmentNotice[] = [];
  const texts: Array<{ index: number; text: string }> = [];
  for (const file of job.files) {
    begin(file.index);
    try {
      const text = await read(file.mediaType, file.data, `attachments[${file.index}]`, notices, job.milliseconds);
      texts.push({ index: file.index, text });
    } catch (error) {
      throw error instanceof Unreadable ? fileFailure(file.index, error.part, error.message) : error;
    }
    // Frees the bytes, which the text replaces.
    file.data = new Uint8Array();
  }
  begin(undefined);
  encoding ??= new Encoding();
  const fitted = fitTexts(
    texts.map(({ text }) => text),
    job.question,
    job.tokens,
    encoding,
  );
  for (const [i, { index, text }] of texts.entries())
    notices.push(...shortened(`attachments[${index}]`, text, fitted[i]));
  const result = texts.map(({ index }, i) => ({ index, text: fitted[i]?.text ?? "", tokens: fitted[i]?.tokens ?? 0 }));
  return { result: { texts: result, notices } };
});

async function read(
  type: string,
  data: Uint8Array,
  field: string,
  notices: AttachmentNotice[],
  milliseconds: number,
): Promise<string> {
  let text: string | undefined;
  if (type === "application/pdf") {
    const pdf = await readPdf(data, milliseconds * PDF_SHARE);
    if (pdf) notices.push(...aboutPages(field, pdf));
    text = pdf?.text;
  } else if (type === DOCX) {
    text = await readDocx(data);
  } else {
    text = await readPlainText(data);
    if (text !== undefined && type === "text/html") text = htmlToText(text);
  }
  if (text === undefined) throw await mismatch(type, data);
  // Stops at the first character that is not white space.
  if (!/\S/.test(text)) {
    text = "";
    const message = `${field} has no readable text; send a scan as an image.`;
    notices.push({ code: "attachment_without_text", message, field });
  }
  return text;
}

function aboutPages(field: string, { text, read, pages, empty }: PdfText): AttachmentNotice[] {
  const notices: AttachmentNotice[] = [];
  if (read < pages) {
    const rest = "the others are too many, too slow or damaged";
    const message = `${read} of the ${pages} pages of ${field} were read; ${rest}.`;
    notices.push({ code: "attachment_pages_left_out", message, field });
  }
  if (empty > 0 && text !== "") {
    const message = `${empty} of the ${pages} pages of ${field} have no readable text; send a scan as an image.`;
    notices.push({ code: "attachment_without_text", message, field });
  }
  return notices;
}

function shortened(field: string, text: string, fitted: Fitted | undefined): AttachmentNotice[] {
  if (!fitted || fitted.kept === text.length) return [];
  const message =
    `${field} is too long to be read completely: its beginning and the parts most relevant to the question were ` +
    `read, ${fitted.kept} of ${text.length} characters.`;
  return [{ code: "attachments_shortened", message, field }];
}
