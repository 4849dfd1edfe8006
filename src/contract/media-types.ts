/** Types whose content is read as text, and images for models with vision. */
export const MEDIA_TYPES: ReadonlySet<string> = new Set([
  "text/plain",
  "text/markdown",
  "text/csv",
  "application/json",
  "text/html",
  "application/xml",
  "text/xml",
  "application/pdf",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
]);

/** Those of them by the extension of a file. */
const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
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

/**
 * The media type with which a file is sent. A program, a log or any other file that is not known counts as plain text.
 * @param name of the file, with its extension
 * @param declared the type that a browser has found, which counts only if the extension says nothing
 */
export function mediaTypeOf(name: string, declared = ""): string {
  const extension = /\.[^./\\]+$/.exec(name)?.[0].toLowerCase() ?? "";
  return BY_EXTENSION.get(extension) ?? (MEDIA_TYPES.has(declared) ? declared : "text/plain");
}
