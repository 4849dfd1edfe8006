import { getHeapStatistics } from "node:v8";
import { getDocumentProxy, getResolvedPDFJS } from "unpdf";
import type { PDFDocumentProxy } from "unpdf/pdfjs";
import { Unreadable } from "./attachment.ts";
import { CharacterMaps } from "./character-maps.ts";

/** Most pages that are read. */
const MAX_PAGES = 500;
/**
 * Bytes of the heap above which the fonts of the pages so far are dropped, and pages between two looks at it. A font
 * that names a character map takes 2 MB, and each page of a merged document may have its own fonts.
 */
const MAX_HEAP = 128 * 1024 * 1024;
const PAGES_PER_LOOK = 10;

export interface PdfText {
  /** Text of the pages, separated by empty lines. */
  text: string;
  /** Number of pages that were read. Damaged pages and pages beyond the limits are left out. */
  read: number;
  /** Number of all pages. */
  pages: number;
  /** Number of pages without text among those that were read. */
  empty: number;
}

/**
 * Reads the text of a PDF, without pictures and annotations.
 * @param milliseconds processor time of this thread after which the remaining pages are left out
 * @returns undefined if the bytes are not a PDF
 * @throws Unreadable if it is damaged or needs a password
 */
export async function readPdf(bytes: Uint8Array, milliseconds: number): Promise<PdfText | undefined> {
  // PDF readers accept the header anywhere in the first 1,024 bytes.
  if (!Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(1024, bytes.length)).includes("%PDF-")) return undefined;
  const usedBefore = process.threadCpuUsage();
  const { VerbosityLevel } = await getResolvedPDFJS();
  try {
    const pdf = await getDocumentProxy(bytes, {
      // Text extraction needs no fonts, and warnings would print content of the file.
      useSystemFonts: false,
      disableFontFace: true,
      BinaryDataFactory: CharacterMaps,
      verbosity: VerbosityLevel.ERRORS,
    });
    const last = Math.min(MAX_PAGES, pdf.numPages);
    const pages: string[] = [];
    for (let number = 1; number <= last && usedSince(usedBefore) < milliseconds; number += 1) {
      const page = await pageText(pdf, number);
      if (page !== undefined) pages.push(page);
      if (number % PAGES_PER_LOOK === 0 && getHeapStatistics().used_heap_size > MAX_HEAP) await pdf.cleanup();
    }
    const { numPages } = pdf;
    await pdf.loadingTask.destroy();
    if (pages.length === 0) throw new Error("no page could be read");
    const empty = pages.filter((page) => page.trim() === "").length;
    return { text: pages.join("\n\n").trim(), read: pages.length, pages: numPages, empty };
  } catch (error) {
    if (error instanceof Error && error.name === "PasswordException") {
      throw new Unreadable("data", "is a PDF with a password. Remove the password, then send it again.");
    }
    throw new Unreadable("data", "is a damaged PDF. Print it to a new PDF, then send that.");
  }
}

/** Processor time of this thread, in milliseconds. */
function usedSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** The text of a page; undefined if the page is damaged. */
async function pageText(pdf: PDFDocumentProxy, number: number): Promise<string | undefined> {
  try {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
  } catch {
    return undefined;
  }
}
