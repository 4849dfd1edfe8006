import type { ModelEntry } from "./port/entry.ts";

/** What the operator should do about a failure that waiting does not mend. */
export function adviceFor(
  { model, apiKeyEnv }: Pick<ModelEntry, "model" | "apiKeyEnv">,
  status: number | undefined,
): string {
  if (status === 404) return `Correct the name "${model}" in the catalogue, or let the account use it.`;
  const key = apiKeyEnv ?? "the key";
  if (status === 402 || status === 429) return `Add credit to the account of ${key} at the vendor.`;
  if (status === 403) return `Allow the account of ${key} to use ${model} at the vendor, or set another key.`;
  if (apiKeyEnv === undefined) return 'Name the variable of a key as "api_key_env" in the catalogue, and set it.';
  return `Set a valid ${key}, then start again.`;
}
