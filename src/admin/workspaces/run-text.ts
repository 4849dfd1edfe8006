import { invalid } from "../../contract/failure.ts";
import { MAX_TEXT_DAYS } from "../../store/partitions.ts";
import type { Pool } from "../../store/pool.ts";
import { record } from "../shared/audit.ts";
import { refuseOperator } from "../shared/rights.ts";
import { findWorkspace, readWorkspace, type WorkspaceAdmin } from "./workspace.ts";

/**
 * Begins or ends keeping the text of requests.
 * @param isPossible whether the service has a key to encrypt with
 */
export function setRunText(pool: Pool, isPossible: boolean): WorkspaceAdmin["setRunText"] {
  return async ({ workspace, days }, actor) => {
    if (days < 0 || days > MAX_TEXT_DAYS) throw invalid("days", `days must be from 0 to ${MAX_TEXT_DAYS}.`);
    if (days > 0) refuseOperator(actor, "begin to keep the text of requests");
    if (days > 0 && !isPossible) {
      const message =
        "The service has no key to encrypt texts with, so it keeps none. The operator must set CHORUS_RUN_TEXT_KEY.";
      throw invalid("days", message);
    }
    return pool.tx(async (query) => {
      const { id } = await findWorkspace(query, actor, workspace);
      const [row] = await query<{ before: number }>(
        `update workspaces w set run_text_days = nullif($2, 0)
         from (select id, coalesce(run_text_days, 0) as before from workspaces where id = $1 for update) o
         where w.id = o.id returning o.before`,
        [id, days],
      );
      const [{ deleted } = { deleted: 0n }] = await query<{ deleted: bigint }>(
        `with d as (delete from run_texts
           where workspace_id = $1 and ($2 = 0 or began_at <= clock_timestamp() - make_interval(hours => 24 * $2))
           returning 1)
         select count(*) as deleted from d`,
        [id, days],
      );
      await record(query, actor, id, "run_text.set", { days, before: row?.before ?? 0, deleted: Number(deleted) });
      // Replicas keep with each key whether the text of its requests is kept.
      await query(
        "select pg_notify('chorus_secrets', encode(secret_hash, 'hex')) from api_keys where workspace_id = $1",
        [id],
      );
      return { workspace: await readWorkspace(query, id) };
    });
  };
}
