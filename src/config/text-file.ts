import { readFileSync } from "node:fs";

/**
 * Reads a file in UTF-8, without the byte order mark that some editors and shells of Windows write at its start.
 * @throws Error of the file system
 */
export function readText(path: string): string {
  return new TextDecoder().decode(readFileSync(path));
}
