import mammoth from "mammoth";
import { type Entry, fromBufferPromise } from "yauzl";
import { Unreadable } from "./attachment.ts";
import { htmlToText } from "./html.ts";

/** Most unpacked bytes of the parts that are read. 2 MB, some 18,000 paragraphs, take 2 s. */
const MAX_UNPACKED = 16 * 1024 * 1024;

/** Most files in the package. */
const MAX_ENTRIES = 10_000;

/** A package in the form that mammoth reads. */
interface Parts {
  exists(name: string): boolean;
  read(name: string, encoding?: "utf-8" | "base64"): Promise<string | Uint8Array>;
}

/**
 * Reads the text of a Word document: paragraphs, headings, lists, tables, footnotes and endnotes; without pictures,
 * comments, headers and footers.
 * @returns undefined if the bytes are not a Word document
 * @throws Unreadable if it is damaged or too large after unpacking
 */
export async function readDocx(bytes: Uint8Array): Promise<string | undefined> {
  if (bytes[0] !== 0x50 || bytes[1] !== 0x4b) return undefined;
  try {
    const parts = await openParts(bytes);
    if (!parts) return undefined;
    const noPicture = mammoth.images.imgElement(async () => ({ src: "" }));
    // mammoth also accepts an open package, which its types do not declare. It would unpack bytes without a limit.
    const input = { file: parts } as unknown as { path: string };
    const { value } = await mammoth.convertToHtml(input, { convertImage: noPicture, includeEmbeddedStyleMap: false });
    return htmlToText(value);
  } catch (error) {
    if (error instanceof Unreadable) throw error;
    throw new Unreadable("data", "is a damaged Word document. Open and save it again, then send it.");
  }
}

/** Opens the package without unpacking it. @returns undefined if it has no Word document */
async function openParts(bytes: Uint8Array): Promise<Parts | undefined> {
  const zip = await fromBufferPromise(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
    lazyEntries: true,
    autoClose: false,
  });
  const entries = new Map<string, Entry>();
  let count = 0;
  for await (const entry of zip.eachEntry()) {
    count += 1;
    if (count > MAX_ENTRIES)
      throw new Unreadable("data", `is a package of more than ${MAX_ENTRIES} files. Send a simpler document.`);
    entries.set(entry.fileName, entry);
  }
  if (!entries.has("[Content_Types].xml") || !entries.keys().some((name) => name.startsWith("word/"))) return undefined;

  let unpacked = 0;
  const read = async (name: string, encoding?: "utf-8" | "base64"): Promise<string | Uint8Array> => {
    const entry = entries.get(name);
    if (!entry) throw new Error("no such part");
    const stream: AsyncIterable<Buffer> = await zip.openReadStreamPromise(entry);
    const chunks: Buffer[] = [];
    // Counts the unpacked bytes, because the declared size can be false.
    for await (const chunk of stream) {
      unpacked += chunk.length;
      if (unpacked > MAX_UNPACKED) {
        throw new Unreadable("data", `unpacks to more than ${MAX_UNPACKED / 1024 / 1024} MB. Send a smaller document.`);
      }
      chunks.push(chunk);
    }
    const content = Buffer.concat(chunks);
    return encoding ? content.toString(encoding) : content;
  };
  return { exists: (name) => entries.has(name), read };
}
