import { invalid } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { type Actor, WHOLE_SERVICE } from "./audit.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage, timeOf } from "./page.ts";
import { findWorkspace } from "./workspaces/workspaces.ts";

/** An admitted request that has ended. */
export interface GenerationRecord {
  id: string;
  requestId: string;
  /** Time of admission. */
  at: Date;
  keyId: string;
  /** Present name of the key; may be empty. */
  keyName: string;
  streamed: boolean;
  shape: string;
  effort: string;
  level: string;
  inputTokens: bigint;
  outputTokens: bigint;
  cachedTokens: bigint;
  /** Charge in millionths of a credit. */
  charged: bigint;
  latencyMs: number;
  /** `ok`, `cut_short`, `caller_gone` or the kind of the failure. */
  outcome: string;
  finishReason: string | null;
  /** Calls of models, retries included; null if it is not known. */
  modelCalls: number | null;
}

interface AuditRecord {
  id: bigint;
  at: Date;
  actorKind: Actor["kind"];
  actorId: string;
  /** Such as `key.create`. */
  action: string;
  /** JSON text of an object. */
  details: string;
}

/** Conditions that listed requests meet. Absent ones do not restrict the list. */
export interface GenerationFilter {
  /** Inclusive. */
  from?: Date | undefined;
  /** Exclusive. */
  to?: Date | undefined;
  keyId?: string;
  /** As in GenerationRecord, or `failed` for every request without an answer. */
  outcome?: string;
  level?: string;
}

interface PageRequest {
  /** Identifier or name; may be empty for an owner. */
  workspace: string;
  pageSize?: number;
  pageToken?: string;
}

interface GenerationPage {
  generations: GenerationRecord[];
  nextPageToken: string | undefined;
  searchedTo: Date | undefined;
}

/**
 * History of a workspace. Every method throws Failure `invalid_request`, `unknown_entity`, or `overloaded` when the
 * database is unavailable.
 */
export interface Activity {
  /**
   * Lists requests in pages, newest first. With filters, a page holds what one bounded search has found, so it may have
   * fewer entries than `pageSize` even when it is not the last.
   * @returns the page; `searchedTo` is the time of the oldest request that was searched, undefined when all were
   */
  generations(actor: Actor, request: PageRequest & GenerationFilter): Promise<GenerationPage>;
  /**
   * Lists the audit in pages, newest first. For an operator who names no workspace, lists what concerns the service as
   * a whole.
   */
  audit(actor: Actor, request: PageRequest): Promise<{ entries: AuditRecord[]; nextPageToken: string | undefined }>;
}

/** Most rows to search for one page when no index covers the filter. Searching them takes about 20 ms. */
const MAX_SEARCHED = 10_000;

const LEVELS: readonly string[] = ["low", "medium", "high"];

/** SQL condition for requests without an answer, as the rollups count them. */
export const FAILED = "(not is_answered(outcome, streamed))";

export function createActivity(pool: Pool): Activity {
  return {
    generations: (actor, request) => listGenerations(pool, actor, request),

    async audit(actor, { workspace, pageSize, pageToken }) {
      const size = sizeOfPage(pageSize);
      const [micros, last] = readPageToken(pageToken, /^(\d{1,16}) (\d{1,18})$/) ?? [];
      const isWhole = workspace === "" && actor.kind === "operator";
      const id = isWhole ? WHOLE_SERVICE : (await orOverloaded(findWorkspace(pool.query, actor, workspace))).id;
      const found = await orOverloaded(
        pool.query<AuditRecord & { micros: bigint }>(
          `select id, at, actor_kind as "actorKind", actor_id as "actorId", action, details::text as details,
             ${microsOf("at")} as micros
           from audit
           where workspace_id = $1 and ($2::timestamptz is null or (at <= $2 and (at, id) < ($2, $3)))
           order by at desc, id desc limit $4`,
          [id, micros === undefined ? null : timeOf(BigInt(micros)), last ?? null, size + 1],
        ),
      );
      const { rows, nextPageToken } = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
      return { entries: rows.map(({ micros: _, ...row }) => row), nextPageToken };
    },
  };
}

async function listGenerations(
  pool: Pool,
  actor: Actor,
  { workspace, pageSize, pageToken, ...filter }: PageRequest & GenerationFilter,
): Promise<GenerationPage> {
  const size = sizeOfPage(pageSize);
  const [micros, last = ""] = readPageToken(pageToken, /^(\d{1,16}) (gen_\w+)$/) ?? [];
  checkFilter(filter);
  const { id } = await orOverloaded(findWorkspace(pool.query, actor, workspace));
  const values: unknown[] = [id];
  const { indexed, others } = conditionsOf(filter, values);
  if (micros !== undefined) {
    const time = `$${values.push(timeOf(BigInt(micros)))}`;
    indexed.push(`created_at <= ${time}`, `(created_at, id) < (${time}, $${values.push(last)})`);
  }
  const limit = others.length > 0 ? MAX_SEARCHED : size + 1;
  const rows = await orOverloaded(
    pool.query<FoundRow>(
      `with searched as materialized (
         select *, ${microsOf("created_at")} as micros from generations where ${indexed.join(" and ")}
         order by created_at desc, id desc limit ${limit}),
       found as (
         select * from searched ${others.length > 0 ? `where ${others.join(" and ")}` : ""}
         order by created_at desc, id desc limit ${size + 1}),
       edge as (
         select count(*) as searched, (array_agg(micros || ' ' || id order by created_at, id))[1] as place,
           min(created_at) as down_to
         from searched)
       select e.searched, e.place as edge, e.down_to, f.micros, f.id, f.request_id as "requestId", f.created_at as at,
         f.key_id as "keyId", coalesce(k.name, '') as "keyName", f.streamed, f.shape, f.effort, f.level,
         f.input_tokens as "inputTokens", f.output_tokens as "outputTokens", f.cached_tokens as "cachedTokens",
         f.credits_micro as charged, f.latency_ms as "latencyMs", f.outcome, f.finish_reason as "finishReason",
         f.model_calls as "modelCalls"
       from edge e left join found f on true
         left join api_keys k on k.id = f.key_id and k.workspace_id = f.workspace_id
       order by f.created_at desc, f.id desc`,
      values,
    ),
  );
  return pageOfFound(rows, size, limit);
}

/** @throws Failure `invalid_request` with the field */
function checkFilter({ keyId = "", outcome = "", level = "" }: GenerationFilter): void {
  if (level !== "" && !LEVELS.includes(level)) throw invalid("level", `level must be one of ${LEVELS.join(", ")}.`);
  if (outcome !== "" && !/^[a-z_]{1,64}$/.test(outcome)) {
    throw invalid("outcome", "outcome must be ok, cut_short, caller_gone, failed, or the code of a failure.");
  }
  if (keyId.includes("\0")) throw invalid("key_id", "key_id must be the identifier of a key.");
}

/**
 * Writes a filter as SQL conditions. `indexed` ones are answered by an index, `others` are checked on the rows that it
 * returns.
 * @param values parameters of the statement; the first is the workspace
 */
function conditionsOf(
  { from, to, keyId = "", outcome = "", level = "" }: GenerationFilter,
  values: unknown[],
): { indexed: string[]; others: string[] } {
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const indexed = ["workspace_id = $1"];
  const others: string[] = [];
  if (from) indexed.push(`created_at >= ${parameter(from)}`);
  if (to) indexed.push(`created_at < ${parameter(to)}`);
  if (keyId !== "") indexed.push(`key_id = ${parameter(keyId)}`);
  if (outcome !== "" && outcome !== "ok") indexed.push("outcome <> 'ok'");
  if (outcome === "failed") others.push(FAILED);
  else if (outcome !== "") others.push(`outcome = ${parameter(outcome)}`);
  if (level !== "") others.push(`level = ${parameter(level)}`);
  return { indexed, others };
}

/** When nothing was found, there is one row that states the extent of the search. */
type FoundRow = Search & ((GenerationRecord & { micros: bigint }) | { micros: null });

interface Search {
  /** Number of rows searched. */
  searched: bigint;
  /** Position and time of the oldest of them. */
  edge: string | null;
  down_to: Date | null;
}

function pageOfFound(rows: FoundRow[], size: number, limit: number): GenerationPage {
  const found = rows.filter((row) => row.micros !== null);
  const page = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
  const generations = page.rows.map(({ micros: _, searched: __, edge: ___, down_to: ____, ...row }) => row);
  if (page.nextPageToken !== undefined) {
    return { generations, nextPageToken: page.nextPageToken, searchedTo: generations.at(-1)?.at };
  }
  const [search] = rows;
  if (!search?.edge || Number(search.searched) < limit) {
    return { generations, nextPageToken: undefined, searchedTo: undefined };
  }
  const nextPageToken = Buffer.from(search.edge).toString("base64url");
  return { generations, nextPageToken, searchedTo: search.down_to ?? undefined };
}
