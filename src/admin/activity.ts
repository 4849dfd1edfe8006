import { create } from "@bufbuild/protobuf";
import {
  type ActivityService,
  GetRunRequestSchema,
  type ListGenerationsRequest,
  OutcomeSchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid } from "../contract/failure.ts";
import { readEnum } from "../contract/json-names.ts";
import { checkUser } from "../contract/subjects.ts";
import type { Pool } from "../store/pool.ts";
import { listAudit } from "./audit.ts";
import { COLUMNS, type GenerationRow, generationMessage } from "./generation.ts";
import { createRunTextAdmin } from "./run-text.ts";
import { awaitOthers, createGetRun, createListRunning, findVisible, findWithRun, type RunParts } from "./runs.ts";
import type { Admin } from "./shared/admin.ts";
import type { Actor } from "./shared/audit.ts";
import { readTimestamp } from "./shared/fields.ts";
import { readPageToken, sizeOfPage, timeOf } from "./shared/page.ts";
import { visibleKeys } from "./shared/rights.ts";
import { type Extent, FAILED, pageOfSearch, searchIn, searchLimit } from "./shared/search.ts";
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

/**
 * The same methods, of which those of one request wait for what another replica has not stored yet.
 * @param admin takes a share of the connections for each call, so that these waits have none
 */
export function afterOthers(admin: ActivityAdmin, hasOthers: (actor: Actor) => Promise<boolean>): ActivityAdmin {
  const getRun: ActivityAdmin["getRun"] = (request, actor) =>
    findWithRun(
      () => admin.getRun(request, actor),
      ({ running, intelligenceTrace, generation: { at, latencyMs } = {} }) => ({
        intelligenceTrace,
        began: running ? undefined : at,
        latencyMs,
      }),
      () => hasOthers(actor),
    );
  return {
    ...admin,
    getRun,
    async getRunText(request, actor) {
      try {
        return await admin.getRunText(request, actor);
      } catch (error) {
        if (!(error instanceof Failure && error.kind === "unknown_entity")) throw error;
        await getRun(create(GetRunRequestSchema, { workspace: request.workspace, id: request.id }), actor);
        return admin.getRunText(request, actor);
      }
    },
    async deleteRunText(request, actor) {
      if (request.texts.value) await awaitOthers(() => hasOthers(actor));
      return admin.deleteRunText(request, actor);
    },
  };
}

/** When nothing was found, there is one row that states the extent of the search. */
type FoundRow = Extent & ((GenerationRow & { micros: bigint }) | { micros: null });

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
    const rows = await pool.query<FoundRow>(
      `with ${searchIn({ table: "generations", time: "created_at", indexed, others }, size)}
       select e.*, f.micros, ${COLUMNS}
       from edge e left join found f on true
         left join outcomes o on o.workspace_id = $1 and o.created_at = f.created_at and o.id = f.id
         left join api_keys k on k.id = f.key_id and k.workspace_id = f.workspace_id
       order by f.created_at desc, f.id desc`,
      values,
    );
    const { rows: found, ...page } = pageOfSearch(rows, size, searchLimit(others, size));
    return { generations: found.map(generationMessage), ...page };
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
