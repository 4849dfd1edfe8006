import { getDocumentProxy, getResolvedPDFJS } from "unpdf";
import type { PDFDocumentProxy } from "unpdf/pdfjs";
import { Unreadable } from "./attachment.ts";

/** Most pages that are read. */
const MAX_PAGES = 500;

export interface PdfText {
  /** Pages with an empty line between them. */
  text: string;
  /** Pages that were read, and of how many: beyond the bounds or damaged, a page is left out. */
  read: number;
  pages: number;
  /** Pages without text among those that were read. */
  empty: number;
}

/**
 * Reads the text of a PDF, not its pictures and annotations.
 * @param deadline on the clock of `performance.now()`; pages that are not read by then are left out
 * @returns nothing when the bytes are no PDF
 * @throws Unreadable when it is damaged or needs a password
 */
export async function readPdf(bytes: Uint8Array, deadline: number): Promise<PdfText | undefined> {
  // Readers look for the header in the first 1,024 bytes.
  if (!Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(1024, bytes.length)).includes("%PDF-")) return undefined;
  const { VerbosityLevel } = await getResolvedPDFJS();
  try {
    const pdf = await getDocumentProxy(bytes, {
      // Nothing of a file may be printed, and no font is needed to know its text.
      useSystemFonts: false,
      disableFontFace: true,
      verbosity: VerbosityLevel.ERRORS,
    });
    const last = Math.min(MAX_PAGES, pdf.numPages);
    const pages: string[] = [];
    for (let number = 1; number <= last && performance.now() < deadline; number += 1) {
      const page = await pageText(pdf, number);
      if (page !== undefined) pages.push(page);
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

/** The text of a page; nothing if the page is damaged. */
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
