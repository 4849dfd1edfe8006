import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ActivityService, type RunText, RunTextState } from "../../gen/chorus/admin/v1/activity_pb.js";
import { Failure, invalid } from "../contract/failure.ts";
import { timeOfGeneration } from "../contract/generation-id.ts";
import { unpackText } from "../runs/text.ts";
import type { SealedText, TextKeys, TextPlace } from "../runs/text-keys.ts";
import type { Pool, Query } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { type Actor, record } from "./shared/audit.ts";
import { refuseOperator } from "./shared/refuse-operator.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

type RunTextAdmin = Pick<Admin<typeof ActivityService>, "getRunText" | "deleteRunText">;

const DAY_MS = 86_400_000;

interface Deleted {
  deleted: bigint;
}

/** What showing texts needs of the requests. */
export interface RunTextParts {
  readonly pool: Pool;
  readonly keys: TextKeys;
  /** Checks that an actor may see a request. @throws Failure `unknown_entity` */
  find(actor: Actor, workspaceId: string, id: string): Promise<unknown>;
  /** Stores the texts that wait on this replica. */
  flush(): Promise<void>;
}

/** Shows and deletes the text of requests. */
export function createRunTextAdmin({ pool, keys, find, flush }: RunTextParts): RunTextAdmin {
  return {
    async getRunText({ workspace, id }, actor) {
      refuseOperator(actor, "read the text of requests");
      const { id: workspaceId } = await findWorkspace(pool.query, actor, workspace);
      await find(actor, workspaceId, id);
      const found = await readText(pool.query, { workspaceId, id });
      if (!found.text) throw new Failure("unknown_entity", { field: "id", message: WHY_NOT[found.state] });
      const text = await openText(keys, { workspaceId, id }, found.text);
      await record(pool.query, actor, workspaceId, "run_text.read", { id });
      return { ...text, keptUntil: timestampFromMs((timeOfGeneration(id) ?? 0) + found.days * DAY_MS) };
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
  if (began === undefined) throw invalid("id", "id must be the identifier of a request, such as gen_….");
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

interface FoundText {
  readonly state: keyof typeof WHY_NOT;
  /** Of the workspace; 0: it keeps no texts. */
  readonly days: number;
  /** Undefined unless the state is `KEPT`. */
  readonly text: SealedText | undefined;
}

interface TextRow {
  days: number | null;
  forbidden: boolean;
  keyName: string | null;
  sealed: Buffer | null;
}

/** Reads the text of a request that exists. Text that its retention should have deleted already is not found. */
export async function readText(query: Query, { workspaceId, id }: TextPlace): Promise<FoundText> {
  const began = new Date(timeOfGeneration(id) ?? 0);
  const [row] = await query<TextRow>(
    `select w.run_text_days as days, t.key_name as "keyName", t.sealed,
       exists (select from generations f join api_keys k on k.workspace_id = $1 and k.id = f.key_id
         where f.workspace_id = $1 and f.created_at >= $3::timestamptz - interval '1 minute'
           and f.created_at < $3::timestamptz + interval '10 minutes' and f.id = $2 and k.forbids_text) as forbidden
     from workspaces w
       left join run_texts t on t.workspace_id = $1 and t.began_at = $3 and t.id = $2
         and t.began_at > clock_timestamp() - make_interval(days => w.run_text_days)
     where w.id = $1`,
    [workspaceId, id, began],
  );
  const { days = null, forbidden = false, keyName = null, sealed = null } = row ?? {};
  if (keyName !== null && sealed) return { state: RunTextState.KEPT, days: days ?? 0, text: { keyName, sealed } };
  const missing = forbidden ? RunTextState.FORBIDDEN : RunTextState.ABSENT;
  return { state: days === null ? RunTextState.OFF : missing, days: days ?? 0, text: undefined };
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
