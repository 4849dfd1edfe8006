import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type RecordOutcomeRequest,
  type RecordOutcomeResponse,
  RecordOutcomeResponseSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Clock } from "../contract/clock.ts";
import { Failure, invalid } from "../contract/failure.ts";
import { timeOfGeneration } from "../contract/generation-id.ts";
import { digestsOf } from "../outcomes/form.ts";
import type { Pool } from "../store/pool.ts";

/** Most characters of an expected answer. */
const MAX_EXPECTED = 20_000;

interface Row {
  state: "recorded" | "unknown" | "incomparable";
  score: number;
  recordedAt: Date;
}

interface Options {
  workspaceId: string;
  /** Posts what waits in the log of a workspace. */
  post(workspaceId: string): Promise<void>;
  clock: Clock | undefined;
}

/**
 * Records how good an answer of the workspace was.
 * @throws Failure `invalid_request` with the field; `unknown_entity` with `id` without such an answer of the last seven
 *   days
 */
export async function recordOutcome(
  pool: Pool,
  request: RecordOutcomeRequest,
  { workspaceId, post, clock }: Options,
): Promise<RecordOutcomeResponse> {
  const { id, expected } = request;
  const score = readScore(request);
  const began = timeOfGeneration(id);
  if (began === undefined) throw unknown();
  const digests = expected === "" ? null : JSON.stringify(digestsOf(id, expected));
  // An answer that has just ended may wait in the log.
  await post(workspaceId);
  const [row] = await pool.query<Row>(
    `select state, score, recorded_at as "recordedAt" from record_outcome($1, $2, $3, $4, $5, $6)`,
    [workspaceId, id, new Date(began), score ?? null, digests, clock ? new Date(clock()) : null],
  );
  if (row?.state === "incomparable") {
    throw invalid("expected", "The answer cannot be compared with expected. Send score or correct.");
  }
  if (row?.state !== "recorded") throw unknown();
  return create(RecordOutcomeResponseSchema, {
    generationId: id,
    score: row.score,
    recordedAt: timestampFromDate(row.recordedAt),
  });
}

/** @returns undefined if only the expected answer is given */
function readScore({ score, correct, expected }: RecordOutcomeRequest): number | undefined {
  if (score !== undefined && correct !== undefined) throw invalid("score", "Send score or correct, not both.");
  if (score === undefined && correct === undefined && expected === "") {
    throw invalid("score", "The outcome needs score (0 to 1), correct (true or false) or expected (the right answer).");
  }
  if (score !== undefined && !(score >= 0 && score <= 1)) {
    throw invalid("score", "score must be a number from 0.0 to 1.0.");
  }
  if (expected.length > MAX_EXPECTED && [...expected].length > MAX_EXPECTED) {
    throw invalid("expected", "expected may have up to 20,000 characters.");
  }
  return score ?? (correct === undefined ? undefined : Number(correct));
}

function unknown(): Failure {
  const message = "The workspace has no answer with this identifier from the last seven days.";
  return new Failure("unknown_entity", { field: "id", message });
}
