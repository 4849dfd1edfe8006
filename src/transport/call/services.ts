import type {
  GenerateRequest,
  GenerationService,
  GetGenerationRequest,
  MetricsRequest,
  QuotasRequest,
  RecordOutcomeRequest,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { AdminServices } from "../../admin/services.ts";
import { type Authenticator, type Caller, requireScope, type Scope } from "../../admission/authenticate.ts";
import { createGeneration, type Generation, type GenerationParts } from "../../generate/generate.ts";
import type { InFlight } from "../../generate/in-flight.ts";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { Shedder } from "../../overload/shedder.ts";
import type { Run } from "./call.ts";
import { callerOf } from "./identity.ts";

/** All use cases of the service, for every transport. Every method throws Failure. */
export interface Services extends AdminServices {
  /**
   * Authenticates an API key, checks its scope, and refuses the request while the workspace sends too many.
   * @returns without a promise if the key is cached
   */
  authorize(secret: string | string[] | undefined, scope: Scope): Caller | Promise<Caller>;
  readonly generation: Generation;
  /**
   * True from the end of the start until the service drains, except while the database is not reachable, or while the
   * vendors of all models refuse their keys and none has answered since the start.
   */
  ready(): boolean;
  /**
   * Why no model can answer until the operator acts: the vendor of each one refuses its key, account or name, or all
   * are disabled. Undefined otherwise.
   */
  noModel(): "vendors_refuse" | "models_disabled" | undefined;
  /** True from the beginning of a stop. */
  draining(): boolean;
}

export interface Parts {
  /** What requests are answered with from now on. */
  generation: () => GenerationParts;
  inFlight: InFlight;
  authenticator: Authenticator;
  admin: AdminServices;
  /** Whether the start has ended and the database is reachable. */
  isServing(): boolean;
  /**
   * `disabled`: operators have disabled each model. `refuse`: the vendor of each model refuses its key, account or
   * name. `refuse_start`: it does so since the start, and probes will notice when one does not.
   */
  vendors(): "ok" | "disabled" | "refuse" | "refuse_start";
  shedder: Shedder;
}

export function createServices({
  generation,
  inFlight,
  authenticator,
  admin,
  isServing,
  vendors,
  shedder,
}: Parts): Services {
  return {
    ...admin,
    authorize(secret, scope) {
      const admit = (caller: Caller) => {
        requireScope(caller, scope);
        shedder.admit(caller.workspaceId);
        return caller;
      };
      const caller = authenticator.authenticate(typeof secret === "string" ? secret : undefined);
      return caller instanceof Promise ? caller.then(admit) : admit(caller);
    },
    generation: createGeneration(generation),
    ready: () => isServing() && !inFlight.draining && vendors() !== "refuse_start",
    noModel() {
      const state = vendors();
      if (state === "ok") return undefined;
      return state === "disabled" ? "models_disabled" : "vendors_refuse";
    },
    draining: () => inFlight.draining,
  };
}

/** Creates the functions that run the methods of callers, whatever the format. */
export function runGeneration({
  generation,
  recordOutcome,
  getGeneration,
  quotas,
  metrics,
}: Pick<Services, "generation" | "recordOutcome" | "getGeneration" | "quotas" | "metrics">): Record<
  keyof typeof GenerationService.method,
  Run
> {
  return {
    generate: ({ request }, call) => generation.generateWhole(request as GenerateRequest | ReadRequest, call.context()),
    streamGenerate: ({ request }, call) => {
      const context = call.context();
      return (take) => generation.generate(request as GenerateRequest | ReadRequest, context, take);
    },
    recordOutcome: ({ request }, { identity }) => recordOutcome(request as RecordOutcomeRequest, callerOf(identity)),
    getGeneration: ({ request }, { identity }) => getGeneration(request as GetGenerationRequest, callerOf(identity)),
    quotas: ({ request }, { identity }) => quotas(callerOf(identity), request as QuotasRequest),
    metrics: ({ request }, { identity }) => metrics(request as MetricsRequest, callerOf(identity)),
  };
}
