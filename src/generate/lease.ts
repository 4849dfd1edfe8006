import type { Admission, Opened } from "../admission/lease.ts";
import type { Rates } from "../admission/price.ts";
import { MAX_OUTPUT_TOKENS } from "../contract/terms.ts";
import { traced } from "../telemetry/tracing.ts";
import type { Progress } from "./progress.ts";

/**
 * Takes the lease of a request, which holds its highest possible price.
 * @returns without a promise if nothing had to be waited for
 * @throws Failure; see `Admission.open`
 */
export function openLease(
  admission: Admission,
  rates: Rates,
  { id, checked, subjects, context, streamed, choice, input, idempotency }: Progress,
): Opened | Promise<Opened> {
  return traced("admission", () =>
    admission.open({
      caller: context.caller,
      subjects,
      authenticatedAt: context.startedAt,
      requestId: context.requestId,
      generationId: id,
      streamed,
      shape: checked.shape,
      effort: checked.effort,
      level: choice.level,
      inputTokens: input.inputTokens,
      maxOutputTokens: checked.maxTokens ?? MAX_OUTPUT_TOKENS,
      rates,
      ...(idempotency ? { idempotency: { key: idempotency.key, body: idempotency.body } } : {}),
    }),
  );
}
