/**
 * What vendors say where the operator must act. Each is a fixed text, because the words around it may have the key, a
 * part of it, or the name of an account: OpenAI quotes a short key whole.
 */
const KNOWN: readonly string[] = [
  // Keys: OpenAI, Anthropic, Google, DeepSeek, OpenRouter, Groq, Mistral, vLLM and proxies.
  ...["Incorrect API key provided", "invalid x-api-key", "Invalid API key", "API key not valid", "API key expired"],
  ...["API key not found", "API key is invalid", "No auth credentials found", "Invalid authentication"],
  ...["You didn't provide an API key", "Missing Authentication header", "Missing bearer", "User not found"],
  ...["x-api-key header is required", "API key was reported as leaked", "Unauthorized", "key has been disabled"],
  // Accounts.
  ...["credit balance is too low", "exceeded your current quota", "check your plan and billing details"],
  ...["used all available credits", "reached its monthly spending limit"],
  ...["requires more credits, or fewer max_tokens"],
  ...["Insufficient balance", "Insufficient credits", "Payment required", "account is not active"],
  ...["organization has been disabled", "must be a member of an organization", "IP not authorized"],
  ...["Country, region, or territory not supported", "User location is not supported", "Consumer suspended"],
  ...["has not been used in project", "Billing is disabled", "Billing hard limit has been reached"],
  // Permissions, and names of models.
  ...["insufficient permissions", "Missing scopes", "Permission denied", "does not have access to model"],
  ...["does not exist or you do not have access to it", "is not found for API version", "is not supported for"],
  ...["only supported in v1/responses", "not a chat model", "not supported with the Responses API"],
  ...["does not exist", "has been deprecated", "is no longer available", "model not found", "not found"],
  ...["Model Not Exist", "is not a valid model ID", "Invalid model"],
];
const ANY = new RegExp(KNOWN.map((text) => text.replace(/[.?*+()[\]]/g, "\\$&")).join("|"), "gi");

/** Longest result, in characters. */
const MAX = 200;

/**
 * The parts of a vendor's message that are known, in its order. They quote no key, no prompt and no answer.
 * @returns undefined if no part is known
 */
export function knownWords(message: string): string | undefined {
  const found = new Set(message.match(ANY));
  return found.size === 0 ? undefined : [...found].join("; ").slice(0, MAX);
}
