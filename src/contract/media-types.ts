/** Media types of the files that the service reads, by extension. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  [".md", "text/markdown"],
  [".csv", "text/csv"],
  [".json", "application/json"],
  [".html", "text/html"],
  [".htm", "text/html"],
  [".xml", "application/xml"],
  [".pdf", "application/pdf"],
  [".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  [".png", "image/png"],
  [".jpg", "image/jpeg"],
  [".jpeg", "image/jpeg"],
  [".webp", "image/webp"],
  [".gif", "image/gif"],
]);

const KNOWN = new Set(MEDIA_TYPES.values());

/**
 * The media type with which a file is sent. A program, a log or any other file that is not known counts as plain text.
 * @param name of the file, with its extension
 * @param declared the type that a browser has found, which counts only if the extension says nothing
 */
export function mediaTypeOf(name: string, declared = ""): string {
  const extension = /\.[^./\\]+$/.exec(name)?.[0].toLowerCase() ?? "";
  return MEDIA_TYPES.get(extension) ?? (KNOWN.has(declared) ? declared : "text/plain");
}
