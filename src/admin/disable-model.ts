import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { DisabledModelSchema, OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import type { Pool } from "../store/pool.ts";
import { type ModelsInUse, unknownModel } from "./models-in-use.ts";
import type { Admin } from "./shared/admin.ts";
import { record, WHOLE_SERVICE } from "./shared/audit.ts";
import { checkLabel } from "./shared/fields.ts";

type OperationsAdmin = Admin<typeof OperationsService>;

interface DisabledRow {
  model: string;
  reason: string;
  actorId: string;
  at: Date;
}

/** The disabled models by name. */
export async function readDisabled(
  pool: Pool,
): Promise<ReadonlyMap<string, MessageInitShape<typeof DisabledModelSchema>>> {
  const rows = await pool.query<DisabledRow>(
    `select model, reason, actor_id as "actorId", disabled_at as at from disabled_models`,
  );
  return new Map(rows.map(({ model, at, ...rest }) => [model, { ...rest, at: timestampFromDate(at) }]));
}

/** Disables a model. This process follows at once, others when they get the message. */
export function disableModel(pool: Pool, models: ModelsInUse): OperationsAdmin["disableModel"] {
  return async ({ model, reason }, actor) => {
    checkLabel("reason", reason);
    const all = models.all();
    const tier = all.find(({ name }) => name === model)?.tier;
    if (tier === undefined) throw unknownModel();
    const disabled = await pool.tx(async (query) => {
      await query(
        `insert into disabled_models (model, reason, actor_id) values ($1, $2, $3)
         on conflict (model) do update set reason = excluded.reason, actor_id = excluded.actor_id`,
        [model, reason, actor.id],
      );
      await record(query, actor, WHOLE_SERVICE, "models.disable", { model, ...(reason ? { reason } : {}) });
      await query("select pg_notify('disabled_models', '')");
      return query<{ model: string }>("select model from disabled_models");
    });
    await models.disabledChanged();
    const names = new Set(disabled.map((row) => row.model));
    const left = all.filter(({ name }) => !names.has(name));
    return { enabledModels: left.length, enabledInTier: left.filter((one) => one.tier === tier).length, tier };
  };
}

/** Enables a model, also one that the catalogue no longer has. */
export function enableModel(pool: Pool, models: ModelsInUse): OperationsAdmin["enableModel"] {
  return async ({ model }, actor) => {
    if (model.includes("\0")) throw unknownModel();
    const wasDisabled = await pool.tx(async (query) => {
      const rows = await query("delete from disabled_models where model = $1 returning model", [model]);
      if (rows.length === 0) return false;
      await record(query, actor, WHOLE_SERVICE, "models.enable", { model });
      await query("select pg_notify('disabled_models', '')");
      return true;
    });
    if (!wasDisabled && !models.all().some(({ name }) => name === model)) throw unknownModel();
    await models.disabledChanged();
    return { wasDisabled };
  };
}
