import { stat } from "node:fs/promises";

/**
 * A text that differs whenever files differ: their identities, sizes and times of change. Links are followed, because
 * Kubernetes replaces files by replacing a link. A file that does not exist has a stamp, too.
 */
export async function stampOf(paths: Iterable<string>): Promise<string> {
  const stamps = [...paths].map(async (path) => {
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    return [path, found?.ino, found?.size, found?.mtimeNs].join(" ");
  });
  return (await Promise.all(stamps)).join("\n");
}
