import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  DisabledModelSchema,
  ModelFailureSchema,
  OperationsService,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { Failure } from "../contract/failure.ts";
import type { Learning } from "../learning/knowledge.ts";
import type { Member } from "../models/catalogue.ts";
import type { Tested } from "../models/test-call.ts";
import type { Pool } from "../store/pool.ts";
import type { ModelReport } from "../telemetry/report.ts";
import type { Admin } from "./shared/admin.ts";
import { record, WHOLE_SERVICE } from "./shared/audit.ts";
import { checkLabel } from "./shared/fields.ts";

type OperationsAdmin = Admin<typeof OperationsService>;

/** The models of the catalogue in force. */
export interface ModelsInUse {
  /** All models of the catalogue, disabled ones too. */
  all(): readonly Member[];
  /** Reads which models are disabled. */
  disabledChanged(): Promise<void>;
  /** Sends a model a test call; undefined for an unknown model. */
  test(model: string): Promise<Tested | undefined>;
  /** Undefined: learning is off. */
  readonly learning: Pick<Learning, "refresh"> | undefined;
}

export function unknownModel(): Failure {
  return new Failure("unknown_entity", { field: "model", message: "The catalogue has no model with this name." });
}

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

/** @param count failures since the model last answered */
export function failureMessage(
  { at, ...last }: Omit<NonNullable<ModelReport["failure"]>, "count">,
  count: number,
): MessageInitShape<typeof ModelFailureSchema> {
  // A replica of an earlier version reports no count.
  return { ...last, at: timestampFromDate(new Date(at)), count: BigInt(count || 1) };
}

/** Sends a short prompt to a model from this replica. It is recorded, because the vendor bills it. */
export function testModel(pool: Pool, models: ModelsInUse): OperationsAdmin["testModel"] {
  return async ({ model }, actor) => {
    const tested = await models.test(model);
    if (!tested) throw unknownModel();
    const { failure, durationMs, version = "", inputTokens, outputTokens, usd } = tested;
    const { status, code } = failure ?? {};
    await record(pool.query, actor, WHOLE_SERVICE, "models.test", { model, answered: !failure, status, code });
    return {
      ...{ answered: !failure, durationMs: Math.round(durationMs), servedVersion: version },
      ...{ inputTokens: BigInt(inputTokens), outputTokens: BigInt(outputTokens) },
      ...(usd === undefined ? {} : { costUsd: usd }),
      ...(failure ? { failure: failureMessage(failure, 1) } : {}),
    };
  };
}
