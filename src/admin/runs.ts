import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromDate, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type ActivityService,
  CallOutcomeSchema,
  type RunCallSchema,
  RunTextState,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import {
  EffortSchema,
  FinishReasonSchema,
  GenerationStatus,
  GenerationStatusSchema,
  type GetGenerationRequest,
  type GetGenerationResponse,
  GetGenerationResponseSchema,
  type NoticeSchema,
  StepRoleSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/authenticate.ts";
import { Failure, invalid } from "../contract/failure.ts";
import { timeOfGeneration } from "../contract/generation-id.ts";
import { numberOf } from "../contract/json-names.ts";
import { NOTICE_TEXTS } from "../contract/notice-texts.ts";
import { type Run, type RunCall, type RunRecord, readRecord } from "../runs/record.ts";
import type { RunningRequest, RunningRequests } from "../runs/running.ts";
import type { TextKeys } from "../runs/text-keys.ts";
import { traceMessage } from "../runs/trace-message.ts";
import type { Pool } from "../store/pool.ts";
import { generationOf } from "./find-request.ts";
import { COLUMNS, type GenerationRow, generationMessage } from "./generation.ts";
import { findText, textForItsKey } from "./run-text.ts";
import type { Admin } from "./shared/admin.ts";
import type { Actor } from "./shared/audit.ts";
import { visibleKeys } from "./shared/rights.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

/** The runs that are not in the database yet. */
export interface Runs {
  /** Stores those that have ended on this replica. */
  flush(): Promise<void>;
  /** Whether other replicas may have runs, too. */
  hasOthers(): Promise<boolean>;
  readonly running: RunningRequests;
  /** For the text of those that have ended. */
  readonly textKeys: TextKeys;
}

/** Time after the end of a request in which its replica stores its run and its text, in milliseconds. */
const STORED_MS = 500;

/** What tells whether the run of a found request is stored, and when the request ended. */
interface Found {
  readonly intelligenceTrace?: unknown;
  /** When it began; undefined: there is nothing to wait for. */
  readonly began: MessageInitShape<typeof TimestampSchema> | undefined;
  readonly latencyMs: number | undefined;
}

/**
 * Finds a request, and finds it again once other replicas have stored what ended on them, if its run is missing. Call
 * it without a share of the connections, which others use meanwhile.
 */
export async function findWithRun<T>(
  find: () => Promise<T>,
  describe: (found: T) => Found,
  hasOthers: Runs["hasOthers"],
): Promise<T> {
  const found = await find();
  const { intelligenceTrace, began, latencyMs = 0 } = describe(found);
  if (intelligenceTrace || !began) return found;
  const endedAt = timestampMs(create(TimestampSchema, began)) + latencyMs;
  return (await awaitOthers(hasOthers, endedAt)) ? find() : found;
}

/**
 * Waits until other replicas have stored what ended on them. Call it without a share of the connections, which others
 * use meanwhile.
 * @param endedAt when it ended, in milliseconds since 1970; default: now
 * @returns whether there was something to wait for
 */
export async function awaitOthers(hasOthers: Runs["hasOthers"], endedAt = Date.now()): Promise<boolean> {
  // Clocks differ.
  const left = Math.min(STORED_MS, endedAt + STORED_MS - Date.now());
  if (left <= 0 || !(await hasOthers())) return false;
  await sleep(left);
  return true;
}

/** What shows runs needs. */
export interface RunParts {
  readonly pool: Pool;
  readonly runs: Runs;
  /** Posts the settlements that wait in the log of a workspace. */
  post(workspaceId: string): Promise<void>;
}

interface RunRow extends GenerationRow {
  modelInput: bigint | null;
  modelOutput: bigint | null;
  /** Cost of the calls in US dollars; null if no model has a price. */
  usd: string | null;
  /** Null if the run is not kept. */
  record: RunRecord | null;
}

/**
 * Finds a request of a workspace by its identifier, with its run. The log of the workspace must have been posted.
 * @returns undefined also for a request of another workspace
 */
async function findEnded({ pool, runs }: RunParts, workspaceId: string, id: string): Promise<RunRow | undefined> {
  const began = timeOfGeneration(id);
  if (began === undefined) return undefined;
  await runs.flush();
  const [row] = await pool.query<RunRow>(
    `select ${COLUMNS}, f.model_input_tokens as "modelInput", f.model_output_tokens as "modelOutput",
       trim_scale(f.cost_usd)::text as usd, r.record
     from generations f
       left join runs r on r.workspace_id = $1 and r.began_at = $3 and r.id = $2
       left join outcomes o on o.workspace_id = $1 and o.created_at = f.created_at and o.id = $2
       left join api_keys k on k.id = f.key_id and k.workspace_id = f.workspace_id
     where f.workspace_id = $1 and f.created_at >= $3::timestamptz - interval '1 minute'
       and f.created_at < $3::timestamptz + interval '10 minutes' and f.id = $2
     order by f.created_at limit 1`,
    [workspaceId, id, new Date(began)],
  );
  return row;
}

/** Finds a request that has ended, or one that runs, whose `outcome` is empty. @throws Failure `unknown_entity` */
async function findRun(parts: RunParts, workspaceId: string, id: string): Promise<RunRow> {
  const ended = await findEnded(parts, workspaceId, id);
  if (ended) return ended;
  const running = await parts.runs.running.find(workspaceId, id);
  if (running) {
    const [row] = await rowsOf(parts.pool, workspaceId, [running]);
    if (row) return row;
  }
  // It may have ended meanwhile.
  await parts.post(workspaceId);
  const late = await findEnded(parts, workspaceId, id);
  if (!late) throw unknown();
  return late;
}

/** Rows of requests that run. */
async function rowsOf({ query }: Pool, workspaceId: string, running: readonly RunningRequest[]): Promise<RunRow[]> {
  const ids = [...new Set(running.map(({ keyId }) => keyId))];
  const keys = await query<{ id: string; name: string }>(
    "select id, name from api_keys where workspace_id = $1 and id = any ($2)",
    [workspaceId, ids],
  );
  const names = new Map(keys.map(({ id, name }) => [id, name]));
  return running.map(({ inputTokens, user = "", tags = null, record = null, ...request }) => ({
    ...request,
    ...{ user, tags, record },
    keyName: names.get(request.keyId) ?? "",
    at: new Date(timeOfGeneration(request.id) ?? 0),
    inputTokens: BigInt(inputTokens),
    ...{ outputTokens: 0n, cachedTokens: 0n, charged: 0n, modelInput: null, modelOutput: null, usd: null },
    ...{ outcome: "", finishReason: null, modelCalls: null, score: null },
  }));
}

/** Lists the requests of a workspace that run. */
export function createListRunning({ pool, runs }: RunParts): Admin<typeof ActivityService>["listRunning"] {
  return async ({ workspace }, actor) => {
    const { id } = await findWorkspace(pool.query, actor, workspace);
    const keys = await visibleKeys(pool.query, actor, "");
    const found = await runs.running.list(id);
    const visible = keys ? found.filter(({ keyId }) => keys.includes(keyId)) : found;
    const rows = await rowsOf(pool, id, visible);
    return { generations: rows.map(generationMessage) };
  };
}

function unknown(): Failure {
  const message = "The workspace has no request with this identifier, or it is older than its records are kept.";
  return new Failure("unknown_entity", { field: "id", message });
}

/** The identifier of a generation as it was given, or that of a request. @throws Failure `unknown_entity` */
async function generationIdOf(parts: RunParts, workspaceId: string, id: string): Promise<string> {
  const found = id.startsWith("req_") ? await generationOf(parts, workspaceId, id) : id;
  if (found === undefined) throw unknown();
  return found;
}

/**
 * Finds a request for an actor: developers only see those of their own keys.
 * @throws Failure `invalid_request` without an identifier, `unknown_entity`
 */
export async function findVisible(parts: RunParts, actor: Actor, workspaceId: string, id: string): Promise<RunRow> {
  if (id === "") throw invalid("id", "Give the identifier of the request, such as gen_….");
  const keys = await visibleKeys(parts.pool.query, actor, "");
  const found = await findRun(parts, workspaceId, id);
  if (keys && !keys.includes(found.keyId)) throw unknown();
  return found;
}

/**
 * Shows how a request was answered, or is being answered. Operators see the models and vendors, members only roles;
 * developers only see requests of their own keys.
 */
export function createGetRun(parts: RunParts): Admin<typeof ActivityService>["getRun"] {
  const { query } = parts.pool;
  return async ({ workspace, id: given }, actor) => {
    const { id: workspaceId } = await findWorkspace(query, actor, workspace);
    const id = await generationIdOf(parts, workspaceId, given);
    const found = await findVisible(parts, actor, workspaceId, id);
    const { modelInput, modelOutput, usd, record, ...row } = found;
    const isOperator = actor.kind === "operator";
    const cost = isOperator && usd !== null ? { costUsd: usd } : {};
    const generation = generationMessage(row);
    const running = row.outcome === "";
    const text = running ? RunTextState.UNSPECIFIED : (await findText(query, { workspaceId, id }, row.keyId)).state;
    if (!record) return { generation, running, text, ...cost };
    const run = readRecord(record);
    return {
      generation,
      running,
      text,
      ...cost,
      intelligenceTrace: traceOf(found, run),
      notices: run.notices.map(noticeMessage),
      calls: run.calls.map((call) => callMessage(call, isOperator)),
      callsLeftOut: run.count - run.calls.length,
    };
  };
}

/**
 * Shows a caller how an answer of the workspace was made, and what was said if its key made the request. The log of the
 * workspace must have been posted.
 * @throws Failure `unknown_entity` with `id`
 */
export async function getGeneration(
  parts: RunParts,
  request: GetGenerationRequest,
  { workspaceId, keyId }: Pick<Caller, "workspaceId" | "keyId">,
): Promise<GetGenerationResponse> {
  const id = await generationIdOf(parts, workspaceId, request.id);
  const row = await findEnded(parts, workspaceId, id);
  if (!row) throw unknown();
  const { textKeys } = parts.runs;
  const isOwn = row.keyId === keyId && textKeys.areSet;
  const text = isOwn ? await textForItsKey(parts.pool.query, textKeys, { workspaceId, id }, keyId) : undefined;
  const run = row.record ? readRecord(row.record) : undefined;
  const status = numberOf(GenerationStatusSchema, row.outcome) || GenerationStatus.FAILED;
  return create(GetGenerationResponseSchema, {
    id,
    requestId: row.requestId,
    createdAt: timestampFromDate(row.at),
    status,
    ...(status === GenerationStatus.FAILED ? { failureCode: row.outcome } : {}),
    streamed: row.streamed,
    effort: numberOf(EffortSchema, row.effort),
    latencyMs: row.latencyMs,
    usage: {
      inputTokens: Number(row.inputTokens),
      outputTokens: Number(row.outputTokens),
      cachedTokens: Number(row.cachedTokens),
      credits: Number(row.charged) / 1e6,
    },
    ...(row.finishReason === null ? {} : { finishReason: numberOf(FinishReasonSchema, row.finishReason) }),
    notices: run?.notices.map(noticeMessage) ?? [],
    ...(run ? { intelligenceTrace: traceOf(row, run) } : {}),
    ...(row.user === "" ? {} : { user: row.user }),
    tags: row.tags ?? {},
    ...(row.score === null ? {} : { score: row.score }),
    ...(text ? { text } : {}),
  });
}

function traceOf({ level, modelInput, modelOutput }: RunRow, { reasons, steps, agreement, models }: Run) {
  const tokens = { inputTokens: modelInput ?? 0n, outputTokens: modelOutput ?? 0n };
  return traceMessage({ level, reasons, steps, agreement, models, ...tokens });
}

function noticeMessage({ code, field }: Run["notices"][number]): MessageInitShape<typeof NoticeSchema> {
  const texts: Readonly<Record<string, string>> = NOTICE_TEXTS;
  const message = texts[code] ?? "The text of this notice came with the answer. It is not kept.";
  return { code, message, ...(field === undefined ? {} : { field }) };
}

function callMessage(call: RunCall, isOperator: boolean): MessageInitShape<typeof RunCallSchema> {
  const { step = 0, role, startedMs, durationMs, outcome, source, usd } = call;
  return {
    step,
    role: numberOf(StepRoleSchema, role),
    startedMs,
    durationMs,
    outcome: numberOf(CallOutcomeSchema, outcome),
    inputTokens: BigInt(call.inputTokens),
    cachedTokens: BigInt(call.cachedTokens),
    outputTokens: BigInt(call.outputTokens),
    thinkingTokens: BigInt(call.thinkingTokens),
    isEstimated: source === "estimated",
    ...(isOperator ? secretsOf(call, usd) : {}),
  };
}

/** What only operators see of a call. */
function secretsOf({ model, vendor, version = "", status, code = "" }: RunCall, usd: number | undefined) {
  return {
    ...{ model, vendor, version, code },
    ...(status === undefined ? {} : { status }),
    ...(usd === undefined ? {} : { costUsd: usd.toFixed(6).replace(/\.?0+$/, "") }),
  };
}
