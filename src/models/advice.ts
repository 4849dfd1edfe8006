import type { ModelEntry } from "./port/entry.ts";
import { isRedirect, type ModelError } from "./port/model-error.ts";

/** What OpenAI says of models that do not take chat completions. */
const NO_CHAT = /only supported in v1\/responses|not a chat model/i;

/** What the operator should do about a failure that waiting does not mend. */
export function adviceFor(
  { model, apiKeyEnv, apiKeyFile, api }: Pick<ModelEntry, "model" | "apiKeyEnv" | "apiKeyFile" | "api">,
  { status, cause }: Pick<ModelError, "status" | "cause">,
): string {
  if (isRedirect(status ?? 0))
    return `Correct the address of ${model} in the catalogue: the server sends calls elsewhere.`;
  if (status === 404 && api === undefined && NO_CHAT.test(String(cause)))
    return `Set "api": "responses" for ${model} in the catalogue, or name another model.`;
  const name = `Correct the name "${model}" in the catalogue`;
  if (status === 404 && api === "responses")
    return `${name}, let the account use it, or remove "api": "responses" if the server does not have that API.`;
  if (status === 404) return `${name}, or let the account use it.`;
  const key = apiKeyEnv ?? "the key";
  if (status === 402 || status === 429) return `Add credit to the account of ${key} at the vendor.`;
  if (status === 403) return `Allow the account of ${key} to use ${model} at the vendor, or set another key.`;
  if (apiKeyEnv === undefined) return 'Name the variable of a key as "api_key_env" in the catalogue, and set it.';
  // The service reads a changed file by itself.
  if (apiKeyFile !== undefined) return `Write a valid key to ${apiKeyFile} (${key}_FILE).`;
  return `Set a valid ${key}, then start again.`;
}

/** What the operator should do about a failed test call. @param isLate whether there was no answer in time */
export function testAdvice(entry: ModelEntry, error: ModelError, isLate: boolean): string {
  const { status, vendorCode, kind, needsOperator, refusal } = error;
  if (isLate) return "Test it again. A local model may still be loading; other models answer meanwhile.";
  if (needsOperator) return adviceFor(entry, error);
  if (refusal !== undefined) return "The service did not send the call, because it is busy. Test it again later.";
  if (kind === "refused") return "The model takes calls, but refused this prompt. Test it again.";
  if (status === undefined) {
    if (vendorCode === undefined) return "Test it again. If it fails again, see the log of the service.";
    return "Start the server of the model, or correct its address in the catalogue.";
  }
  if (status === 429) return "Wait, then test it again, or let the vendor raise the limit of the account.";
  if (status >= 500) return "Wait, then test it again; the vendor's status page may say more.";
  return "Compare the entry of the model in the catalogue with the vendor's documentation.";
}
