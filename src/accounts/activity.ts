import { invalid } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import type { Actor } from "./audit.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage, timeOf } from "./page.ts";
import { findWorkspace } from "./workspaces.ts";

/** An admitted request that has ended. */
export interface GenerationRecord {
  id: string;
  requestId: string;
  /** When it was admitted. */
  at: Date;
  keyId: string;
  /** As it is now; empty for a key without one. */
  keyName: string;
  streamed: boolean;
  shape: string;
  effort: string;
  level: string;
  inputTokens: bigint;
  outputTokens: bigint;
  cachedTokens: bigint;
  /** Charged, in millionths of a credit. */
  charged: bigint;
  latencyMs: number;
  /** `ok`, `cut_short`, `caller_gone` or the kind of the failure. */
  outcome: string;
  finishReason: string | null;
}

export interface AuditRecord {
  id: bigint;
  at: Date;
  actorKind: Actor["kind"];
  actorId: string;
  /** Such as `key.create`. */
  action: string;
  /** JSON text of an object. */
  details: string;
}

/** What lets a request into a list; whatever is left out lets everything. */
export interface GenerationFilter {
  /** Inclusive. */
  from?: Date | undefined;
  /** Exclusive. */
  to?: Date | undefined;
  keyId?: string;
  /** As in GenerationRecord; or `failed`: everything that gave no answer. */
  outcome?: string;
  level?: string;
}

interface PageRequest {
  /** Identifier or name; may be empty for an owner. */
  workspace: string;
  pageSize?: number;
  pageToken?: string;
}

/** What happened in a workspace. Every method throws Failure `invalid_request`, `unknown_entity`, or `overloaded` when the database is away. */
export interface Activity {
  /**
   * One page of requests, newest first. A page that is not the last may have fewer than were asked for: where filters let little
   * through, a page is what one bounded search has found.
   * @returns also the time down to which was searched, unless that is everything
   */
  generations(
    actor: Actor,
    request: PageRequest & GenerationFilter,
  ): Promise<{ generations: GenerationRecord[]; nextPageToken: string | undefined; searchedTo: Date | undefined }>;
  /** One page of the audit, newest first. */
  audit(actor: Actor, request: PageRequest): Promise<{ entries: AuditRecord[]; nextPageToken: string | undefined }>;
}

/** Most rows that are read for one page where no index knows what the filter lets through; 10,000 take about 20 ms. */
const MAX_SEARCHED = 10_000;

const LEVELS: readonly string[] = ["low", "medium", "high"];

/** SQL of the requests that gave no answer, as the rollups count them. */
export const FAILED = "(not is_answered(outcome, streamed))";

export function createActivity(pool: Pool): Activity {
  return {
    async generations(actor, { workspace, pageSize, pageToken, from, to, keyId = "", outcome = "", level = "" }) {
      const size = sizeOfPage(pageSize);
      const [micros, last = ""] = readPageToken(pageToken, /^(\d{1,16}) (gen_\w+)$/) ?? [];
      if (level !== "" && !LEVELS.includes(level)) throw invalid("level", `level must be one of ${LEVELS.join(", ")}.`);
      if (outcome !== "" && !/^[a-z_]{1,64}$/.test(outcome)) {
        throw invalid("outcome", "outcome must be ok, cut_short, caller_gone, failed, or the code of a failure.");
      }
      if (keyId.includes("\0")) throw invalid("key_id", "key_id must be the identifier of a key.");
      const { id } = await orOverloaded(findWorkspace(pool.query, actor, workspace));
      const values: unknown[] = [id];
      const value = (given: unknown) => `$${values.push(given)}`;
      // What an index answers, and what is looked for among the rows that it gives.
      const known = ["workspace_id = $1"];
      const rest: string[] = [];
      if (from) known.push(`created_at >= ${value(from)}`);
      if (to) known.push(`created_at < ${value(to)}`);
      if (micros !== undefined) {
        const time = value(timeOf(BigInt(micros)));
        known.push(`created_at <= ${time}`, `(created_at, id) < (${time}, ${value(last)})`);
      }
      if (keyId !== "") known.push(`key_id = ${value(keyId)}`);
      if (outcome !== "" && outcome !== "ok") known.push("outcome <> 'ok'");
      if (outcome === "failed") rest.push(FAILED);
      else if (outcome !== "") rest.push(`outcome = ${value(outcome)}`);
      if (level !== "") rest.push(`level = ${value(level)}`);
      const searched = rest.length > 0 ? MAX_SEARCHED : size + 1;
      const rows = await orOverloaded(
        pool.query<FoundRow>(
          `with searched as materialized (
             select *, ${microsOf("created_at")} as micros from generations where ${known.join(" and ")}
             order by created_at desc, id desc limit ${searched}),
           found as (select * from searched ${rest.length > 0 ? `where ${rest.join(" and ")}` : ""} order by created_at desc, id desc limit ${size + 1}),
           edge as (select count(*) as searched, (array_agg(micros || ' ' || id order by created_at, id))[1] as place, min(created_at) as down_to from searched)
           select e.searched, e.place as edge, e.down_to, f.micros, f.id, f.request_id as "requestId", f.created_at as at, f.key_id as "keyId", coalesce(k.name, '') as "keyName",
             f.streamed, f.shape, f.effort, f.level, f.input_tokens as "inputTokens", f.output_tokens as "outputTokens",
             f.cached_tokens as "cachedTokens", f.credits_micro as charged, f.latency_ms as "latencyMs", f.outcome, f.finish_reason as "finishReason"
           from edge e left join found f on true left join api_keys k on k.id = f.key_id and k.workspace_id = f.workspace_id
           order by f.created_at desc, f.id desc`,
          values,
        ),
      );
      return pageOfFound(rows, size, searched);
    },

    async audit(actor, { workspace, pageSize, pageToken }) {
      const size = sizeOfPage(pageSize);
      const [micros, last] = readPageToken(pageToken, /^(\d{1,16}) (\d{1,18})$/) ?? [];
      const { id } = await orOverloaded(findWorkspace(pool.query, actor, workspace));
      const found = await orOverloaded(
        pool.query<AuditRecord & { micros: bigint }>(
          `select id, at, actor_kind as "actorKind", actor_id as "actorId", action, details::text as details, ${microsOf("at")} as micros
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

/** Where nothing was found there is one row, which tells how far was searched. */
type FoundRow = Search & ((GenerationRecord & { micros: bigint }) | { micros: null });

interface Search {
  /** Number of rows. */
  searched: bigint;
  /** Place and time of the last of them. */
  edge: string | null;
  down_to: Date | null;
}

function pageOfFound(rows: FoundRow[], size: number, most: number): Awaited<ReturnType<Activity["generations"]>> {
  const found = rows.filter((row) => row.micros !== null);
  const page = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
  const generations = page.rows.map(({ micros: _, searched: __, edge: ___, down_to: ____, ...row }) => row);
  if (page.nextPageToken !== undefined) {
    return { generations, nextPageToken: page.nextPageToken, searchedTo: generations.at(-1)?.at };
  }
  const [search] = rows;
  if (!search?.edge || Number(search.searched) < most) {
    return { generations, nextPageToken: undefined, searchedTo: undefined };
  }
  const nextPageToken = Buffer.from(search.edge).toString("base64url");
  return { generations, nextPageToken, searchedTo: search.down_to ?? undefined };
}
