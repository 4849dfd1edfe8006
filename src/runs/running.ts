import type { TransientMap } from "../concurrency/transient.ts";
import { randomHex } from "../contract/random-hex.ts";
import type { Subjects } from "../contract/subjects.ts";
import type { Effort, Level, Shape } from "../contract/terms.ts";
import type { Notifications } from "../store/notifications.ts";
import { type RunFacts, type RunRecord, recordText } from "./record.ts";

/** Channels of questions to all processes, and of their answers. */
const CHANNEL = { ask: "running_ask", reply: "running_reply" } as const;

/** Longest wait for the answers of other processes, in milliseconds. */
const WAIT_MS = 300;

/** Most bytes of the requests of an answer, and of one request without its record. A message has at most 7,999. */
const MAX_BYTES = { reply: 7_000, request: 3_000 };

/** What is known of a request while it runs. */
export interface RunningFacts extends Subjects {
  /** Prefix `gen_`. */
  readonly id: string;
  readonly requestId: string;
  readonly keyId: string;
  readonly streamed: boolean;
  readonly shape: Shape;
  readonly effort: Effort;
  readonly level: Level;
  readonly inputTokens: number;
  /** Time since its arrival, in milliseconds. */
  readonly latencyMs: number;
}

/** A request that runs, with the steps and calls so far where one request was asked for. */
export interface RunningRequest extends RunningFacts {
  readonly record?: RunRecord;
}

/** A running request of this process. */
export interface Look {
  readonly workspaceId: string;
  /** What is known now. */
  look(): { readonly facts: RunningFacts; readonly run: RunFacts };
}

export type RunningRequests = ReturnType<typeof findRunning>;

interface Wanted {
  readonly workspaceId: string;
  /** Undefined: all of the workspace. */
  readonly id?: string;
}

interface Question extends Wanted {
  /** Who asks. */
  readonly from: string;
}

interface Reply {
  readonly to: string;
  readonly requests: readonly RunningRequest[];
}

/** Running requests by the identifiers of their generations. */
type Looks = Pick<TransientMap<string, Look>, "get" | "values">;

/**
 * Finds requests that run, on any replica. Answers what other processes ask about the requests of this one, and asks
 * them. No request that is not asked for costs a message. Messages can be lost, so a request can be missing for a
 * moment.
 * @param here the running requests of this process
 * @param hasOthers whether other processes may run requests
 */
export function findRunning(
  here: Looks,
  notifications: Pick<Notifications, "listen" | "notify">,
  hasOthers: () => Promise<boolean>,
) {
  const waiting = new Map<string, (requests: readonly RunningRequest[]) => void>();
  const send = (channel: string, message: Question | Reply) =>
    // Without the database, the asker sees the requests of its own process.
    notifications.notify(channel, JSON.stringify(message)).catch(() => undefined);

  notifications.listen(CHANNEL.ask, (payload) => {
    const { from = "", workspaceId = "", ...rest } = messageOf<Question>(payload);
    if (waiting.has(from)) return;
    const requests = find(here, { workspaceId, ...rest });
    if (requests.length > 0) void send(CHANNEL.reply, { to: from, requests });
  });
  notifications.listen(CHANNEL.reply, (payload) => {
    const { to = "", requests = [] } = messageOf<Reply>(payload);
    waiting.get(to)?.(requests);
  });

  async function ask(question: Wanted): Promise<RunningRequest[]> {
    const own = find(here, question);
    if ((question.id !== undefined && own.length > 0) || !(await hasOthers())) return own;
    const { promise, resolve } = Promise.withResolvers<void>();
    const from = randomHex();
    const found = [...own];
    waiting.set(from, (requests) => {
      found.push(...requests);
      if (question.id !== undefined) resolve();
    });
    const timer = setTimeout(resolve, WAIT_MS);
    await send(CHANNEL.ask, { from, ...question });
    await promise;
    clearTimeout(timer);
    waiting.delete(from);
    return found;
  }

  return {
    /** Those of a workspace, newest first; of a busy replica only the newest, about 25. */
    async list(workspaceId: string): Promise<RunningRequest[]> {
      const found = await ask({ workspaceId });
      // The time is at the start of each identifier.
      return found.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    },
    /** One with its steps and calls so far; undefined if it does not run. */
    async find(workspaceId: string, id: string): Promise<RunningRequest | undefined> {
      const [found] = await ask({ workspaceId, id });
      return found;
    },
  };
}

/** Reads a message. Any role of the database can send one, so it may be anything. */
function messageOf<M extends object>(payload: string): Partial<M> {
  try {
    return Object(JSON.parse(payload)) as Partial<M>;
  } catch {
    return {};
  }
}

/** The requests of this process that answer a question, as many as fit into a message. */
function find(here: Looks, { workspaceId, id }: Wanted): RunningRequest[] {
  if (id !== undefined) {
    const one = here.get(id);
    if (one?.workspaceId !== workspaceId) return [];
    const { facts, run } = one.look();
    return [{ ...shortened(facts), record: JSON.parse(recordText(run)) as RunRecord }];
  }
  const found: RunningRequest[] = [];
  let length = 0;
  for (const one of [...here.values()].reverse()) {
    if (one.workspaceId !== workspaceId) continue;
    const facts = shortened(one.look().facts);
    length += bytesOf(facts);
    if (length > MAX_BYTES.reply) break;
    found.push(facts);
  }
  return found;
}

/** Leaves out tags that are too long for a message. */
function shortened({ tags, ...facts }: RunningFacts): RunningFacts {
  const whole = tags ? { ...facts, tags } : facts;
  return bytesOf(whole) > MAX_BYTES.request ? facts : whole;
}

function bytesOf(facts: RunningFacts): number {
  return Buffer.byteLength(JSON.stringify(facts));
}
