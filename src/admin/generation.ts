import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  AnswerShapeSchema,
  type Generation,
  type GenerationSchema,
  Outcome,
  OutcomeSchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema, FinishReasonSchema } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../contract/json-names.ts";
import type { Tags } from "../contract/subjects.ts";
import { amountText } from "./shared/amount.ts";

/** A row of `COLUMNS`. */
export type GenerationRow = Pick<Generation, "id" | "requestId" | "keyId" | "keyName" | "streamed" | "user"> &
  Pick<Generation, "inputTokens" | "outputTokens" | "cachedTokens" | "latencyMs"> & {
    /** Time of admission. */
    at: Date;
    shape: string;
    effort: string;
    level: string;
    /** Charge in millionths of a credit. */
    charged: bigint;
    /** `ok`, `cut_short`, `caller_gone` or the kind of the failure; empty while the request runs. */
    outcome: string;
    finishReason: string | null;
    /** Calls of models, retries included; null if it is not known. */
    modelCalls: number | null;
    /** Score of the recorded outcome, 0 to 1; null without one. */
    score: number | null;
    tags: Tags | null;
  };

/** Columns of a request: of the tables `generations f`, `outcomes o` and `api_keys k`. */
export const COLUMNS = `f.id, f.request_id as "requestId", f.created_at as at, f.key_id as "keyId",
  coalesce(k.name, '') as "keyName", f.streamed, f.shape, f.effort, f.level, f.input_tokens as "inputTokens",
  f.output_tokens as "outputTokens", f.cached_tokens as "cachedTokens", f.credits_micro as charged,
  f.latency_ms as "latencyMs", f.outcome, f.finish_reason as "finishReason", f.model_calls as "modelCalls", o.score,
  coalesce(f.end_user, '') as "user", f.tags`;

export function generationMessage(row: GenerationRow): MessageInitShape<typeof GenerationSchema> {
  const { at, charged, shape, effort, level, outcome, finishReason, modelCalls, score, tags, ...rest } = row;
  // The store keeps the code of a failure in place of an outcome.
  const known = numberOf(OutcomeSchema, outcome);
  return {
    ...rest,
    at: timestampFromDate(at),
    shape: numberOf(AnswerShapeSchema, shape),
    effort: numberOf(EffortSchema, effort),
    level: numberOf(EffortSchema, level),
    credits: amountText(charged),
    outcome: known || (outcome === "" ? Outcome.UNSPECIFIED : Outcome.FAILED),
    failureCode: known ? "" : outcome,
    finishReason: numberOf(FinishReasonSchema, finishReason ?? ""),
    ...(modelCalls === null ? {} : { modelCalls }),
    ...(score === null ? {} : { score }),
    ...(tags ? { tags } : {}),
  };
}
