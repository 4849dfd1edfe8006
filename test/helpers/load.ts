import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "../../src/store/pool.ts";
import type { Lifetime } from "./lifetime.ts";
import type { TestService } from "./service.ts";
import { type ScriptedVendor, startVendor } from "./vendors.ts";

/** Balance at which every answer is charged in full, in micro-credits. */
const PLENTY_MICRO = 1_000_000;

/** Result of one request as its caller saw it. */
export interface Seen {
  /** `answered`: the complete answer. `left`: the caller closed the stream early. `lost`: the connection broke. */
  outcome: "answered" | "refused" | "failed" | "left" | "lost";
  streamed: boolean;
  workspaceId: string;
  status: number;
  requestId: string | null;
  generationId?: string;
  credits?: number;
}

/** A workspace that sends requests; its key's secret is its identifier. */
export interface Sender {
  workspaceId: string;
  /** Share of each kind of request; the shares sum to 1. */
  mix: { unary: number; stream: number; leave: number; keyed: number };
}

export interface Load {
  readonly seen: readonly Seen[];
  /** Ends the load. Waits until every request with an idempotency key is answered. */
  finish(): Promise<void>;
  /** Answered idempotency keys, each with the generation that answered it. */
  readonly keyed: ReadonlyMap<string, { workspaceId: string; generationId: string }>;
}

/** Starts a vendor that a tag in the prompt makes fail, break the connection or wait; it answers other prompts. */
export function startFaultyVendor(): Promise<ScriptedVendor> {
  return startVendor("openai", ({ body, streamed }) => {
    if (body.includes("[fail]")) return { status: 400, error: { message: "no" } };
    if (body.includes("[break]"))
      return { text: ["One ", "two ", "three."], betweenMs: 10, end: "reset", after: streamed ? 2 : 0 };
    const wait = Number(/\[wait (\d+)\]/.exec(body)?.[1] ?? 0);
    return streamed
      ? { text: ["This ", "is ", "an ", "answer ", "in ", "pieces."], betweenMs: wait / 6 }
      : { text: "This is an answer in one piece.", headersMs: wait };
  });
}

/**
 * Sends requests of many kinds from `clients` concurrent callers until `finish` is called.
 * @param services returns the services that accept requests now
 */
export function startLoad(
  t: Lifetime,
  services: () => readonly Pick<TestService, "url">[],
  senders: readonly Sender[],
  clients: number,
): Load {
  const seen: Seen[] = [];
  const keyed = new Map<string, { workspaceId: string; generationId: string }>();
  let ending = false;
  let abandoned = false;
  t.onTestFinished(() => {
    ending = abandoned = true;
  });
  const loops = Array.from({ length: clients }, async (_, i) => {
    const sender = senders[i % senders.length];
    assert.ok(sender);
    while (!ending) {
      const one = await send(sender);
      if (one) seen.push(one);
      // A refused caller waits before its next request.
      await sleep(one?.outcome === "refused" ? 50 : one?.outcome === "lost" ? 100 : 0);
    }
  });
  return {
    seen,
    keyed,
    async finish() {
      ending = true;
      await Promise.all(loops);
    },
  };

  async function send({ workspaceId, mix }: Sender): Promise<Seen | undefined> {
    const service = pick(services());
    if (!service) {
      await sleep(20);
      return undefined;
    }
    let kind = Math.random();
    const is = (share: number) => {
      kind -= share;
      return kind < 0;
    };
    if (is(mix.keyed)) return sendKeyed(workspaceId);
    const streamed = !is(mix.unary);
    const leaves = streamed && !is(mix.stream);
    const words = ["", "", "[wait 30]", "[wait 100]", "[wait 600]", "", streamed ? "[break]" : "[fail]"];
    const body = { prompt: `${pick(words)} Tell me something.`, max_tokens: 60 };
    const unknown = { streamed, workspaceId, status: 0, requestId: null };
    const controller = new AbortController();
    try {
      const response = await fetch(`${service.url}/v1/generate${streamed ? ":stream" : ""}`, {
        method: "POST",
        headers: { "x-api-key": workspaceId, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: controller.signal,
      });
      const { status } = response;
      const base = { ...unknown, status, requestId: response.headers.get("x-request-id") };
      try {
        if (status === 200 && streamed) return await readStream(response, base, leaves ? controller : undefined);
        return { ...base, ...readWhole(status, (await response.json()) as WholeAnswer) };
      } catch {
        return { ...base, outcome: "lost" };
      }
    } catch {
      return { ...unknown, outcome: "lost" };
    }
  }

  /** Retries one idempotency key on any service until it is answered. */
  async function sendKeyed(workspaceId: string): Promise<undefined> {
    const key = randomUUID();
    const body = JSON.stringify({
      prompt: `${pick(["", "[wait 100]", "[wait 800]"])} Charge me once.`,
      max_tokens: 60,
    });
    for (const until = Date.now() + 90_000; ; await sleep(100)) {
      if (abandoned) return undefined;
      assert.ok(Date.now() < until, "no answer for an idempotency key in 90 s");
      const service = pick(services());
      if (!service) continue;
      try {
        const response = await fetch(`${service.url}/v1/generate`, {
          method: "POST",
          headers: { "x-api-key": workspaceId, "content-type": "application/json", "idempotency-key": key },
          body,
          // The caller gives up after this time and retries.
          signal: AbortSignal.timeout(pick([300, 1_000, 5_000]) ?? 0),
        });
        const { id } = (await response.json()) as { id?: string };
        if (response.status !== 200 || !id) continue;
        keyed.set(key, { workspaceId, generationId: id });
        return undefined;
      } catch {
        // The request may have been answered or not.
      }
    }
  }
}

interface WholeAnswer {
  id?: string;
  usage?: { credits: number };
}

function readWhole(status: number, body: WholeAnswer): Pick<Seen, "outcome" | "generationId" | "credits"> {
  if (status !== 200) return { outcome: [401, 402, 409, 422, 429, 503].includes(status) ? "refused" : "failed" };
  assert.ok(body.id && body.usage);
  return { outcome: "answered", generationId: body.id, credits: body.usage.credits };
}

async function readStream(
  response: Response,
  base: Omit<Seen, "outcome">,
  leave: AbortController | undefined,
): Promise<Seen> {
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("event: delta")) leave?.abort();
    }
  } catch (error) {
    if (!leave?.signal.aborted) throw error;
  }
  const [, data] = /^event: done\ndata: (.+)$/m.exec(text) ?? [];
  if (data !== undefined) {
    const done = JSON.parse(data);
    return { ...base, outcome: "answered", generationId: done.id, credits: done.usage.credits };
  }
  if (leave?.signal.aborted) return { ...base, outcome: "left" };
  return { ...base, outcome: text.includes("event: error") ? "failed" : "lost" };
}

/**
 * Compares the results that callers saw with their charges: the price for an answer, the price of the delivered part
 * for a stream whose caller left, nothing for a refusal or failure, and one charge for each idempotency key.
 * @param killed whether services were killed; parts that they had delivered are not charged then
 * @returns the number of requests of each outcome, for the test report
 */
export async function checkCharges(pool: Pool, load: Load, killed = false): Promise<Record<string, number>> {
  const rows = await pool.query<{
    id: string;
    request_id: string;
    workspace_id: string;
    outcome: string;
    micro: bigint;
  }>("select id, request_id, workspace_id, outcome, credits_micro as micro from generations");
  // An answer of the journal whose grant had ended is charged up to the credit and the limits that were left.
  const scarce = await pool.query<{ id: string }>(
    `select workspace_id as id from accounts
     where spend_limits <> '{}' or granted_micro + purchased_micro < ${PLENTY_MICRO}`,
  );
  const canBeLate = new Set(killed ? scarce.map(({ id }) => id) : []);
  const byRequest = new Map(rows.map((row) => [row.request_id, row]));
  assert.equal(byRequest.size, rows.length, "a request was recorded twice");
  const counts: Record<string, number> = { keyed: load.keyed.size, late: 0 };
  for (const one of load.seen) {
    const row = byRequest.get(one.requestId ?? "");
    const facts = JSON.stringify({ seen: one, charged: row && { outcome: row.outcome, micro: Number(row.micro) } });
    counts[`${one.streamed ? "stream" : "unary"} ${one.outcome}`] =
      (counts[`${one.streamed ? "stream" : "unary"} ${one.outcome}`] ?? 0) + 1;
    if (one.outcome === "answered") {
      assert.ok(row, `delivered and not recorded: ${facts}`);
      assert.equal(row.id, one.generationId, facts);
      if (canBeLate.has(row.workspace_id) && Number(row.micro) / 1e6 < (one.credits ?? 0)) {
        counts.late = (counts.late ?? 0) + 1;
        continue;
      }
      assert.ok(row.micro > 0n, `delivered and not charged: ${facts}`);
      assert.equal(Number(row.micro) / 1e6, one.credits, facts);
    } else if (one.outcome === "refused" || one.outcome === "failed") {
      assert.ok(!row || row.micro === 0n, `failed and charged: ${facts}`);
    } else if (one.outcome === "left" && !killed) {
      assert.ok(row, `partly delivered and not recorded: ${facts}`);
      assert.equal(row.micro > 0n, row.outcome === "ok" || row.outcome === "caller_gone", facts);
    }
  }
  for (const workspaceId of new Set([...load.keyed.values()].map((one) => one.workspaceId))) {
    const answers = [...load.keyed.values()]
      .filter((one) => one.workspaceId === workspaceId)
      .map((one) => one.generationId);
    const charged = rows.filter((row) => row.workspace_id === workspaceId && row.micro > 0n).map((row) => row.id);
    assert.deepEqual(charged.sort(), answers.sort(), "charged once for each idempotency key");
  }
  return counts;
}

function pick<T>(from: readonly T[]): T | undefined {
  return from[Math.floor(Math.random() * from.length)];
}
