import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type ActivityService,
  ActorKindSchema,
  type ListGenerationsRequest,
  type ListGenerationsResponseSchema,
  OutcomeSchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../contract/failure.ts";
import { numberOf, readEnum } from "../contract/json-names.ts";
import { checkUser } from "../contract/subjects.ts";
import type { Pool } from "../store/pool.ts";
import { COLUMNS, type GenerationRow, generationMessage } from "./generation.ts";
import { createRunTextAdmin } from "./run-text.ts";
import { createGetRun, createListRunning, findVisible, type RunParts } from "./runs.ts";
import type { Admin } from "./shared/admin.ts";
import { FAILED } from "./shared/failed.ts";
import { readTimestamp } from "./shared/fields.ts";
import { visibleKeys } from "./shared/own-keys.ts";
import { microsOf, pageOf, pageToken, readPageToken, sizeOfPage, timeOf } from "./shared/page.ts";
import { checkSubject } from "./shared/subject.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

type ActivityAdmin = Admin<typeof ActivityService>;

/** Lists and shows the requests, and lists the audit log of a workspace, for operators and its members. */
export function createActivityAdmin(parts: RunParts): ActivityAdmin {
  const { pool } = parts;
  return {
    listGenerations: listGenerations(pool),
    listRunning: createListRunning(parts),
    getRun: createGetRun(parts),
    ...createRunTextAdmin({
      pool,
      keys: parts.runs.textKeys,
      find: (actor, workspaceId, id) => findVisible(parts, actor, workspaceId, id),
      flush: parts.runs.flush,
    }),
    listAudit: listAudit(pool),
  };
}

interface Search {
  /** Number of rows searched. */
  searched: bigint;
  /** Position and time of the oldest of them. */
  edge: string | null;
  down_to: Date | null;
}

/** When nothing was found, there is one row that states the extent of the search. */
type FoundRow = Search & ((GenerationRow & { micros: bigint }) | { micros: null });

/** Most rows to search for one page when no index covers the filter. Searching them takes about 20 ms. */
const MAX_SEARCHED = 10_000;

const LEVELS: readonly string[] = ["low", "medium", "high"];

/**
 * Lists requests in pages, newest first. With filters, a page holds what one bounded search has found, so it may have
 * fewer entries than its size even when it is not the last.
 */
function listGenerations(pool: Pool): ActivityAdmin["listGenerations"] {
  return async (request, actor) => {
    const filter = readFilter(request);
    const size = sizeOfPage(request.pageSize);
    const [micros, last = ""] = readPageToken(request.pageToken, /^(\d{1,16}) (gen_\w+)$/) ?? [];
    checkFilter(filter);
    const { id } = await findWorkspace(pool.query, actor, request.workspace);
    const values: unknown[] = [id];
    const keys = await visibleKeys(pool.query, actor, filter.keyId);
    const { indexed, others } = conditionsOf(filter, keys, values);
    if (micros !== undefined) {
      const time = `$${values.push(timeOf(micros))}`;
      indexed.push(`created_at <= ${time}`, `(created_at, id) < (${time}, $${values.push(last)})`);
    }
    const limit = others.length > 0 ? MAX_SEARCHED : size + 1;
    const rows = await pool.query<FoundRow>(
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
       select e.searched, e.place as edge, e.down_to, f.micros, ${COLUMNS}
       from edge e left join found f on true
         left join outcomes o on o.workspace_id = $1 and o.created_at = f.created_at and o.id = f.id
         left join api_keys k on k.id = f.key_id and k.workspace_id = f.workspace_id
       order by f.created_at desc, f.id desc`,
      values,
    );
    return pageOfFound(rows, size, limit);
  };
}

/** Conditions that listed requests meet. Empty ones do not restrict the list. */
interface Filter {
  /** Inclusive. */
  from: Date | undefined;
  /** Exclusive. */
  to: Date | undefined;
  keyId: string;
  /** As in GenerationRow, or `failed` for every request without an answer. */
  outcome: string;
  level: string;
  user: string;
  /** NAME=VALUE. */
  tag: string;
}

/** @throws Failure `invalid_request` with the field */
function readFilter({ startTime, endTime, keyId, ended, level, user, tag }: ListGenerationsRequest): Filter {
  if (user !== "") checkUser("user", user);
  if (tag !== "") checkSubject("tag", `tag:${tag}`);
  return {
    from: readTimestamp("from", startTime),
    to: readTimestamp("to", endTime),
    keyId,
    outcome: ended.case === "outcome" ? readEnum("outcome", OutcomeSchema, ended.value) : (ended.value ?? ""),
    level: readEnum("level", EffortSchema, level),
    user,
    tag,
  };
}

/** @throws Failure `invalid_request` with the field */
function checkFilter({ keyId, outcome, level }: Filter): void {
  if (level !== "" && !LEVELS.includes(level)) throw invalid("level", `level must be one of ${LEVELS.join(", ")}.`);
  if (outcome !== "" && !/^[a-z_]{1,64}$/.test(outcome)) {
    throw invalid("outcome", "outcome must be ok, cut_short, caller_gone, failed, or the code of a failure.");
  }
  if (keyId.includes("\0")) throw invalid("key_id", "key_id must be the identifier of a key.");
}

/**
 * Writes a filter as SQL conditions. `indexed` ones are answered by an index, `others` are checked on the rows that it
 * returns.
 * @param keys whose requests are listed; undefined: all
 * @param values parameters of the statement; the first is the workspace
 */
function conditionsOf(
  { from, to, outcome, level, user, tag }: Filter,
  keys: readonly string[] | undefined,
  values: unknown[],
): { indexed: string[]; others: string[] } {
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const indexed = ["workspace_id = $1"];
  const others: string[] = [];
  if (from) indexed.push(`created_at >= ${parameter(from)}`);
  if (to) indexed.push(`created_at < ${parameter(to)}`);
  if (keys?.length === 1) indexed.push(`key_id = ${parameter(keys[0])}`);
  else if (keys) others.push(`key_id = any (${parameter(keys)})`);
  if (outcome !== "" && outcome !== "ok") indexed.push("outcome <> 'ok'");
  if (outcome === "failed") others.push(FAILED);
  else if (outcome !== "") others.push(`outcome = ${parameter(outcome)}`);
  if (level !== "") others.push(`level = ${parameter(level)}`);
  if (user !== "") others.push(`end_user = ${parameter(user)}`);
  const [, name, value] = /^([^=]*)=(.*)$/su.exec(tag) ?? [];
  if (name) others.push(`tags ->> ${parameter(name)} = ${parameter(value)}`);
  return { indexed, others };
}

/** The page of what was found. `searchedTo` is the time of the oldest request that was searched, unless all were. */
function pageOfFound(
  rows: FoundRow[],
  size: number,
  limit: number,
): MessageInitShape<typeof ListGenerationsResponseSchema> {
  const found = rows.filter((row) => row.micros !== null);
  const page = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
  const generations = page.rows.map(generationMessage);
  const last = page.rows.at(-1);
  if (page.nextPageToken !== "" && last) {
    return { generations, nextPageToken: page.nextPageToken, searchedTo: timestampFromDate(last.at) };
  }
  const [search] = rows;
  if (!search?.edge || !search.down_to || Number(search.searched) < limit) return { generations };
  return { generations, nextPageToken: pageToken(search.edge), searchedTo: timestampFromDate(search.down_to) };
}

interface AuditRow {
  id: bigint;
  at: Date;
  micros: bigint;
  actorKind: string;
  actorId: string;
  actorName: string;
  /** Empty: the service as a whole. */
  workspaceId: string;
  workspace: string;
  /** Such as `key.create`. */
  action: string;
  /** JSON text of an object. */
  details: string;
}

/** Lists the audit in pages, newest first: of a workspace, or for an operator who names none, every change. */
function listAudit(pool: Pool): ActivityAdmin["listAudit"] {
  return async ({ workspace, ...page }, actor) => {
    const size = sizeOfPage(page.pageSize);
    const [micros, last] = readPageToken(page.pageToken, /^(\d{1,16}) (\d{1,18})$/) ?? [];
    const isWhole = workspace === "" && actor.kind === "operator";
    const values: unknown[] = [timeOf(micros), last ?? null, size + 1];
    // A statement of its own for each index.
    const of = isWhole
      ? ""
      : `and a.workspace_id = $${values.push((await findWorkspace(pool.query, actor, workspace)).id)}`;
    const found = await pool.query<AuditRow>(
      `select a.id, at, actor_kind as "actorKind", actor_id as "actorId", action, details::text as details,
         coalesce((select coalesce(nullif(p.name, ''), p.email) from people p where p.id = actor_id), '')
           as "actorName",
         a.workspace_id as "workspaceId", coalesce(w.name, '') as workspace, ${microsOf("at")} as micros
       from audit a left join workspaces w on w.id = a.workspace_id
       where ($1::timestamptz is null or (at <= $1 and (at, a.id) < ($1, $2))) ${of}
       order by at desc, a.id desc limit $3`,
      values,
    );
    const { rows, nextPageToken } = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
    const entries = rows.map(({ id, at, actorKind, ...entry }) => ({
      ...entry,
      id: `${id}`,
      at: timestampFromDate(at),
      actorKind: numberOf(ActorKindSchema, actorKind),
    }));
    return { entries, nextPageToken };
  };
}
