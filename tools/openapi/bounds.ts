import { MAX_OUTPUT_TOKENS } from "../../src/terms.ts";
import type { Schema } from "./schema.ts";

/**
 * Bounds of request fields, which the service checks in `src/service/validate-request.ts`. A test sends a value at each
 * bound and one beyond it to a running service.
 */
export const BOUNDS: Readonly<Record<string, Schema>> = {
  "GenerateRequest.prompt": { minLength: 1, maxLength: 200_000 },
  "GenerateRequest.messages": { maxItems: 40 },
  "GenerateRequest.attachments": { maxItems: 5 },
  "GenerateRequest.temperature": { minimum: 0, maximum: 2 },
  "GenerateRequest.max_tokens": { minimum: 1, maximum: MAX_OUTPUT_TOKENS },
  "GenerateRequest.stop_sequences": { maxItems: 4, items: { type: "string", minLength: 1 } },
  "Attachment.name": { maxLength: 255 },
  "Attachment.data": { minLength: 1 },
};
