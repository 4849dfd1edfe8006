import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ActivityService, RunTextState } from "../../gen/chorus/admin/v1/activity_pb.js";
import type { RunText } from "../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid } from "../contract/failure.ts";
import { timeOfGeneration } from "../contract/generation-id.ts";
import { unpackText } from "../runs/text.ts";
import type { SealedText, TextKeys, TextPlace } from "../runs/text-keys.ts";
import type { Pool, Query } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { type Actor, record } from "./shared/audit.ts";
import { MS } from "./shared/period.ts";
import { refuseOperator } from "./shared/rights.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

type RunTextAdmin = Pick<Admin<typeof ActivityService>, "getRunText" | "deleteRunText">;

interface Deleted {
  deleted: bigint;
}

/** What showing texts needs of the requests. */
export interface RunTextParts {
  readonly pool: Pool;
  readonly keys: TextKeys;
  /** Finds a request that an actor may see. @throws Failure `unknown_entity` */
  find(actor: Actor, workspaceId: string, id: string): Promise<{ keyId: string }>;
  /** Stores the texts that wait on this replica. */
  flush(): Promise<void>;
}

/** Shows and deletes the text of requests. */
export function createRunTextAdmin({ pool, keys, find, flush }: RunTextParts): RunTextAdmin {
  return {
    async getRunText({ workspace, id }, actor) {
      refuseOperator(actor, "read the text of requests");
      const { id: workspaceId } = await findWorkspace(pool.query, actor, workspace);
      const { keyId } = await find(actor, workspaceId, id);
      const { state, days } = await findText(pool.query, { workspaceId, id }, keyId);
      if (state !== RunTextState.KEPT) throw absent(state);
      const text = await readText(pool.query, keys, { workspaceId, id }, days);
      await record(pool.query, actor, workspaceId, "run_text.read", { id });
      return text;
    },

    async deleteRunText({ workspace, texts }, actor) {
      if (texts.case === undefined || !texts.value)
        throw invalid("id", "Give the identifier of a request, such as gen_…, or true for all.");
      await flush();
      const place = texts.case === "id" ? placeOf(texts.value) : undefined;
      return pool.tx(async (query) => {
        const { id } = await findWorkspace(query, actor, workspace);
        const [{ deleted } = { deleted: 0n }] = await query<Deleted>(
          `with d as (delete from run_texts
             where workspace_id = $1 and ($2::timestamptz is null or (began_at = $2 and id = $3)) returning 1)
           select count(*) as deleted from d`,
          [id, place?.began ?? null, place?.id ?? null],
        );
        const what = place ? { id: place.id } : { all: true };
        await record(query, actor, id, "run_text.delete", { ...what, deleted: Number(deleted) });
        return { deleted };
      });
    },
  };
}

function placeOf(id: string): { began: Date; id: string } {
  const began = timeOfGeneration(id);
  if (began === undefined) throw invalid("id", "id must be the identifier of a generation, such as gen_….");
  return { began: new Date(began), id };
}

/** Why the text of a request is not there. */
const WHY_NOT = {
  [RunTextState.OFF]: "The workspace keeps no text of requests. An owner can change that.",
  [RunTextState.FORBIDDEN]: "No text of this request is kept, because its key forbids it.",
  [RunTextState.ABSENT]:
    "No text of this request is kept: it came before texts were kept, was deleted or is too old, or the workspace " +
    "had too much text on that day.",
  [RunTextState.KEPT]: "",
};

interface FoundState {
  readonly state: keyof typeof WHY_NOT;
  /** Of the workspace; 0: it keeps no texts. */
  readonly days: number;
}

/**
 * Finds out whether the text of a request is kept. Text that its retention should have deleted already is not.
 * @param keyId of the request's API key
 */
export async function findText(query: Query, { workspaceId, id }: TextPlace, keyId: string): Promise<FoundState> {
  const [row] = await query<{ days: number | null; forbidden: boolean; kept: boolean }>(
    `select w.run_text_days as days,
       exists (select from api_keys where workspace_id = $1 and id = $4 and forbids_text) as forbidden,
       exists (select from run_texts where workspace_id = $1 and began_at = $3 and id = $2
         and began_at > clock_timestamp() - make_interval(hours => 24 * w.run_text_days)) as kept
     from workspaces w where w.id = $1`,
    [workspaceId, id, new Date(timeOfGeneration(id) ?? 0), keyId],
  );
  if (!row || row.days === null) return { state: RunTextState.OFF, days: 0 };
  const missing = row.forbidden ? RunTextState.FORBIDDEN : RunTextState.ABSENT;
  return { state: row.kept ? RunTextState.KEPT : missing, days: row.days };
}

/**
 * Reads the text of a request for the key that made it. It needs no entry of the audit log, because the key sent the
 * prompt and got the answer.
 * @returns undefined where it is not kept, or cannot be decrypted, of which `GetRunText` says the cause
 */
export async function textForItsKey(
  query: Query,
  keys: TextKeys,
  place: TextPlace,
  keyId: string,
): Promise<RunText | undefined> {
  const { state, days } = await findText(query, place, keyId);
  if (state !== RunTextState.KEPT) return undefined;
  try {
    return await readText(query, keys, place, days);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/**
 * @param days for which the workspace keeps texts
 * @throws Failure `unknown_entity`, if the text was deleted meanwhile; `internal` as `openText`
 */
async function readText(query: Query, keys: TextKeys, place: TextPlace, days: number): Promise<RunText> {
  const [text] = await query<SealedText>(
    `select key_name as "keyName", sealed from run_texts where workspace_id = $1 and began_at = $2 and id = $3`,
    [place.workspaceId, new Date(timeOfGeneration(place.id) ?? 0), place.id],
  );
  if (!text) throw absent(RunTextState.ABSENT);
  const keptUntil = timestampFromMs((timeOfGeneration(place.id) ?? 0) + days * MS.day);
  return { ...(await openText(keys, place, text)), keptUntil };
}

function absent(state: keyof typeof WHY_NOT): Failure {
  return new Failure("unknown_entity", { field: "id", message: WHY_NOT[state] });
}

/** @throws Failure `internal`, if the key is not set or the row was changed */
async function openText(keys: TextKeys, place: TextPlace, text: SealedText): Promise<RunText> {
  let cause: unknown;
  try {
    const packed = keys.open(place, text);
    if (packed) return await unpackText(packed);
  } catch (error) {
    cause = error;
  }
  const message = cause
    ? "The text of this request cannot be decrypted: it was changed in the database, or moved there."
    : `The text of this request was encrypted with the key ${text.keyName}, which CHORUS_RUN_TEXT_KEY no longer has. ` +
      "The operator must add that key again.";
  throw new Failure("internal", { message, needsOperator: true, cause: cause ?? new Error(message) });
}
