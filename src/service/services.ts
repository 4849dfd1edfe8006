import type { MetricsRequest, MetricsResponse, QuotasResponse } from "../../gen/chorus/v1/generation_pb.js";
import { type Caller, type Keys, requireScope, type Scope } from "../admission/keys.ts";
import type { Admission } from "../admission/lease.ts";
import type { Usage } from "../admission/usage.ts";
import type { Config } from "../config.ts";
import type { Engine } from "../engine/answer.ts";
import { createGeneration, type Generation } from "./generate.ts";
import { createKeyAdmin, type KeyAdmin } from "./keys.ts";
import { metrics } from "./metrics.ts";
import { quotas } from "./quotas.ts";
import type { Work } from "./work.ts";

/** Everything that the service does, for whichever transport asks. Every method throws Failure. */
export interface Services {
  /** Finds out who calls, and whether the key may do what it asks for. */
  authorize(secret: string | string[] | undefined, scope: Scope): Promise<Caller>;
  authorizeOperator(token: string | undefined): Promise<void>;
  readonly generation: Generation;
  quotas(caller: Caller): Promise<QuotasResponse>;
  metrics(request: MetricsRequest, caller: Caller): Promise<MetricsResponse>;
  readonly keys: KeyAdmin;
  /** Whether new requests are taken. */
  ready(): boolean;
}

export interface Parts {
  engine: Engine;
  admission: Admission;
  keys: Keys;
  usage: Usage;
  work: Work;
  deadlines: Config["deadlines"];
}

export function createServices({ engine, admission, keys, usage, work, deadlines }: Parts): Services {
  return {
    async authorize(secret, scope) {
      const caller = await keys.authenticate(typeof secret === "string" ? secret : undefined);
      requireScope(caller, scope);
      return caller;
    },
    authorizeOperator: (token) => keys.authenticateOperator(token),
    generation: createGeneration(engine, admission, work, deadlines),
    quotas: (caller) => quotas(usage, admission, caller, new Date()),
    metrics: (request, caller) => metrics(usage, request, caller, new Date()),
    keys: createKeyAdmin(keys),
    ready: () => !work.draining,
  };
}
