import { MetricsGroupBy } from "../../gen/chorus/v1/generation_pb.js";
import { CliError } from "./target.ts";

/** Reads `--by key|user|tag:NAME`. @throws CliError */
export function groupBy(by: string): { groupBy: MetricsGroupBy; groupTag?: string } {
  if (by === "key") return { groupBy: MetricsGroupBy.KEY };
  if (by === "user") return { groupBy: MetricsGroupBy.USER };
  if (by.startsWith("tag:")) return { groupBy: MetricsGroupBy.TAG, groupTag: by.slice(4) };
  throw new CliError(`--by must be key, user or tag:NAME, but is "${by}".`);
}
