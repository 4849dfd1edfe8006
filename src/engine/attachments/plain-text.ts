import { Unreadable } from "./attachment.ts";
import { seemingType } from "./media-type.ts";

/** Controls that no text holds: all but tab, line ends, form feed, backspace and escape. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const BINARY = /[\x00-\x07\x0e-\x1a\x1c-\x1f]/;

/**
 * Decodes a file of a text type; a byte order mark is dropped.
 * @returns nothing when the bytes are no text
 * @throws Unreadable when the text is in another encoding than UTF-8
 */
export async function readPlainText(bytes: Uint8Array): Promise<string | undefined> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    if (await seemingType(bytes)) return undefined;
    throw new Unreadable("data", "must be text in UTF-8. Save the file in that encoding.");
  }
  return text.startsWith("%PDF-") || BINARY.test(text) ? undefined : text;
}
