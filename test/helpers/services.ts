import type { Caller } from "../../src/admission/authenticate.ts";
import type { GenerateEvent, RequestContext, Take } from "../../src/generate/request-context.ts";
import type { EventStream } from "../../src/transport/call/call.ts";
import type { Services } from "../../src/transport/call/services.ts";

/** The caller of every request, unless the test authenticates itself. */
export const CALLER: Caller = {
  workspaceId: "ws_1",
  workspace: "default",
  keyId: "key_1",
  scopes: ["generate", "metrics"],
};

type Functions =
  | "authorize"
  | "authorizeActor"
  | "recordOutcome"
  | "getGeneration"
  | "quotas"
  | "metrics"
  | "ready"
  | "draining";
export type SomeServices = Partial<Pick<Services, Functions>> & {
  [K in Exclude<keyof Services, Functions | "generation">]?: Partial<Services[K]>;
} & {
  generation?: Partial<Omit<Services["generation"], "generate">> & {
    generate?(request: unknown, context: RequestContext): AsyncGenerator<GenerateEvent>;
  };
};

/** Passes the events of a generator on, as a stream does. */
export function streamOf(events: AsyncIterable<GenerateEvent>): EventStream {
  return async (take) => {
    for await (const event of events) await take(event);
  };
}

/**
 * Services for a listener, of which only those in `given` do something. Every key and token is valid unless `given`
 * checks it.
 */
export function servicesWith(given: SomeServices): Services {
  const absent = {} as never;
  const services: Services = {
    authorize: async () => CALLER,
    authorizeActor: async () => ({ kind: "operator", id: "tok_test" }),
    generation: absent,
    recordOutcome: absent,
    getGeneration: absent,
    quotas: absent,
    metrics: absent,
    workspaces: absent,
    credits: absent,
    keys: absent,
    caps: absent,
    usage: absent,
    activity: absent,
    operations: absent,
    alerts: absent,
    members: absent,
    people: undefined,
    sessions: absent,
    signIn: absent,
    operatorSessions: absent,
    operatorSignIn: absent,
    ready: () => true,
    noModel: () => undefined,
    draining: () => false,
  };
  const { generation, ...others } = given;
  const generate = generation?.generate;
  const streams = generate && {
    generate: (request: unknown, context: RequestContext, take: Take) => streamOf(generate(request, context))(take),
  };
  return {
    ...services,
    ...(others as Partial<Services>),
    generation: {
      enter: () => undefined,
      limits: () => undefined,
      ...generation,
      ...streams,
    } as Services["generation"],
  };
}
