import { Unreadable } from "./attachment.ts";
import { detectedType } from "./media-type.ts";

/** Control characters that do not occur in text: all except tab, line ends, form feed, backspace and escape. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds them
const BINARY = /[\x00-\x07\x0e-\x1a\x1c-\x1f]/;

/**
 * Decodes a file of a text type without its byte order mark.
 * @returns undefined if the bytes are not text
 * @throws Unreadable if the text is not in UTF-8
 */
export async function readPlainText(bytes: Uint8Array): Promise<string | undefined> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    if (await detectedType(bytes)) return undefined;
    throw new Unreadable("data", "must be text in UTF-8. Save the file in that encoding.");
  }
  return text.startsWith("%PDF-") || BINARY.test(text) ? undefined : text;
}
