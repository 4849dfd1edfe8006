import { hash } from "node:crypto";
import type { ModelEntry } from "./port/entry.ts";

/**
 * Identifies what an entry of the catalogue asks, in 8 hexadecimal digits: the same for the same model at the same
 * vendor, whatever its price or tier. So figures about answers do not pass to another model of the same name.
 */
export function fingerprintOf({ vendor, model, baseUrl = "", thinks = false, api }: ModelEntry): string {
  return hash("sha256", JSON.stringify([vendor, model, baseUrl, thinks, ...(api ? [api] : [])])).slice(0, 8);
}

/** Identifies what an entry asks together with the version that its vendor serves, in 8 hexadecimal digits. */
export function versionFingerprint(entry: string, version: string): string {
  return hash("sha256", `${entry} ${version}`).slice(0, 8);
}
