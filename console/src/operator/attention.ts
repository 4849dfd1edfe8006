import {
  type ListModelsResponse,
  type ListReplicasResponse,
  ModelHealth,
  type ModelState,
  type ReplicaState,
} from "../../../gen/chorus/admin/v1/operations_pb.js";
import { count, words } from "../format.ts";

/** Something that an operator should look at. */
export interface Concern {
  readonly tone: "bad" | "warn";
  readonly text: string;
  /** The page that shows more. */
  readonly page: "models" | "replicas";
}

/** What needs attention, the worst first. */
export function concernsOf({ models }: ListModelsResponse, { replicas }: ListReplicasResponse): Concern[] {
  const concerns = [
    ...models.flatMap(ofModel),
    ...replicas.flatMap(ofReplica),
    ...(replicas.length === 0
      ? [{ tone: "bad", text: "No replica has reported yet.", page: "replicas" } as const]
      : []),
  ];
  return [...concerns.filter(({ tone }) => tone === "bad"), ...concerns.filter(({ tone }) => tone === "warn")];
}

function ofModel({ name, health, lastFailure, disabled, unexpectedVersion, servedVersion }: ModelState): Concern[] {
  const why = lastFailure ? `: ${[lastFailure.status, lastFailure.code].filter(Boolean).join(" ") || "no answer"}` : "";
  const page = "models";
  if (health === ModelHealth.DISABLED) {
    return [{ tone: "warn", text: `${name} is disabled${disabled?.reason ? `: ${disabled.reason}` : ""}.`, page }];
  }
  if (health === ModelHealth.DOWN) return [{ tone: "bad", text: `${name} is down${why}.`, page }];
  if (health === ModelHealth.DEGRADED) return [{ tone: "warn", text: `${name} fails at times${why}.`, page }];
  return unexpectedVersion ? [{ tone: "warn", text: `${name} is answered by ${servedVersion}.`, page }] : [];
}

function ofReplica({ host, pid, journal, overload }: ReplicaState): Concern[] {
  const where = `${host} · ${pid}`;
  const page = "replicas";
  const lost = (journal?.damaged ?? 0n) + (journal?.refused ?? 0n) + (journal?.failures ?? 0n);
  const shed = overload.filter(({ requests }) => requests > 0n);
  const causes = shed.map(({ cause, requests }) => `${words(cause)} ${count(requests)}`).join(", ");
  const concerns: (Concern | false)[] = [
    lost > 0n && { tone: "bad", text: `${where} could not record ${charges(lost)}.`, page },
    (journal?.waiting ?? 0n) > 0n && {
      tone: "warn",
      text: `${where} keeps ${charges(journal?.waiting ?? 0n)} until the database takes them.`,
      page,
    },
    shed.length > 0 && { tone: "warn", text: `${where} has refused requests under overload: ${causes}.`, page },
  ];
  return concerns.filter((concern) => concern !== false);
}

function charges(of: bigint): string {
  return `${count(of)} ${of === 1n ? "charge" : "charges"}`;
}
