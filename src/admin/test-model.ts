import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ModelFailureSchema, OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import type { Pool } from "../store/pool.ts";
import type { ModelReport } from "../telemetry/report.ts";
import { type ModelsInUse, unknownModel } from "./models-in-use.ts";
import type { Admin } from "./shared/admin.ts";
import { record, WHOLE_SERVICE } from "./shared/audit.ts";

/** @param count failures since the model last answered */
export function failureMessage(
  { at, ...last }: Omit<NonNullable<ModelReport["failure"]>, "count">,
  count: number,
): MessageInitShape<typeof ModelFailureSchema> {
  // A replica of an earlier version reports no count.
  return { ...last, at: timestampFromDate(new Date(at)), count: BigInt(count || 1) };
}

/** Sends a short prompt to a model from this replica. It is recorded, because the vendor bills it. */
export function testModel(pool: Pool, models: ModelsInUse): Admin<typeof OperationsService>["testModel"] {
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
