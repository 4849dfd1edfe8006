import type { MessageInitShape } from "@bufbuild/protobuf";
import type { LearnedAbilitySchema, OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import { invalid } from "../contract/failure.ts";
import { ABILITIES, type Ability } from "../contract/terms.ts";
import { type Duel, readDuels } from "../learning/knowledge.ts";
import { summarise } from "../learning/summary.ts";
import type { Member } from "../models/catalogue.ts";
import { isStated } from "../models/order.ts";
import type { Pool } from "../store/pool.ts";
import { type ModelsInUse, unknownModel } from "./models.ts";
import type { Admin } from "./shared/admin.ts";
import { record, WHOLE_SERVICE } from "./shared/audit.ts";

type OperationsAdmin = Admin<typeof OperationsService>;

/** Lists what has been learned, also while learning is off. */
export function listLearned(pool: Pool, { all, learning }: ModelsInUse): OperationsAdmin["listLearned"] {
  return async () => {
    const duels = await readDuels(pool);
    const abilities = ABILITIES.flatMap((ability) => messageOf(all(), duels, ability) ?? []);
    return { on: learning !== undefined, abilities };
  };
}

function messageOf(
  members: readonly Member[],
  duels: readonly Duel[],
  ability: Ability,
): MessageInitShape<typeof LearnedAbilitySchema> | undefined {
  const { graded, isEnough, models } = summarise(members, duels, ability);
  if (graded === 0) return undefined;
  return {
    ability,
    graded: BigInt(graded),
    enough: isEnough,
    stated: isStated(members, ability),
    models: models.map(({ name, accuracy, interval, wins, losses, isHeld }) => ({
      name,
      accuracy,
      accuracyLow: interval[0],
      accuracyHigh: interval[1],
      wins: BigInt(wins),
      losses: BigInt(losses),
      held: isHeld,
    })),
  };
}

/** Forgets sums of pairs. This process forgets at once, others when they read the sums again. */
export function resetLearned(pool: Pool, { all, learning }: ModelsInUse): OperationsAdmin["resetLearned"] {
  return async ({ model, ability }, actor) => {
    if (ability !== "" && !ABILITIES.some((one) => one === ability)) {
      throw invalid("ability", `ability must be one of ${ABILITIES.join(", ")}, or empty for all.`);
    }
    if (model.includes("\0")) throw unknownModel();
    const graded = await pool.tx(async (query) => {
      const rows = await query<{ graded: bigint }>(
        `delete from model_duels where $1 in ('', one, other) and $2 in ('', ability)
         returning wins + losses as graded`,
        [model, ability],
      );
      if (rows.length === 0 && model !== "" && !all().some(({ name }) => name === model)) {
        throw unknownModel();
      }
      const sum = rows.reduce((total, row) => total + row.graded, 0n);
      const details = { ...(model ? { model } : {}), ...(ability ? { ability } : {}), graded: Number(sum) };
      await record(query, actor, WHOLE_SERVICE, "models.reset_learned", details);
      return sum;
    });
    await learning?.refresh();
    return { graded };
  };
}
