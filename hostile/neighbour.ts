/**
 * The well-behaved workspace, in a process of its own: a constant rate of small requests (open loop), on kept and on
 * new connections, over REST, server-sent events and Connect. An operator and an owner work beside it.
 */
import { Agent } from "node:http";
import { ANSWER, PROMPT } from "./answer.ts";
import { answer, input } from "./child.ts";
import { exchange, type HttpRequest } from "./exchange.ts";
import { type Figures, figuresOf, type Kind, type Sample } from "./figures.ts";
import { RATES } from "./rates.ts";

export interface NeighbourInput {
  url: string;
  rpcUrl: string;
  key: string;
  operatorToken: string;
  ownerToken: string;
  workspaceId: string;
}

const target = input<NeighbourInput>();
const kept = new Agent({ keepAlive: true });
const bodyOf = (prompt: string) => JSON.stringify({ prompt, effort: "low", max_tokens: 100 });
const body = bodyOf(PROMPT);
const json = { "content-type": "application/json" };
const caller = { ...json, "x-api-key": target.key };
const connect = { ...json, "connect-protocol-version": "1" };

/** The request of each kind, and a text that its correct response contains. */
const REQUESTS: Readonly<Record<Kind, HttpRequest & { expected: string }>> = {
  unary: { url: `${target.url}/v1/generate`, headers: caller, body, agent: kept, expected: ANSWER },
  // Long enough to be counted off the event loop.
  long: {
    url: `${target.url}/v1/generate`,
    headers: caller,
    body: bodyOf(`${"Some words before the question. ".repeat(600)}${PROMPT}`),
    agent: kept,
    expected: ANSWER,
  },
  rpc: {
    url: `${target.rpcUrl}/chorus.v1.GenerationService/Generate`,
    headers: { ...connect, "x-api-key": target.key },
    body: JSON.stringify({ prompt: PROMPT, effort: "EFFORT_LOW", maxTokens: 100 }),
    agent: kept,
    expected: ANSWER,
  },
  // On a new connection each, as short-lived clients do.
  stream: { url: `${target.url}/v1/generate:stream`, headers: caller, body, expected: "event: done" },
  operator: {
    url: `${target.rpcUrl}/chorus.admin.v1.WorkspaceService/GetWorkspace`,
    headers: { ...connect, authorization: `Bearer ${target.operatorToken}` },
    body: JSON.stringify({ workspace: target.workspaceId }),
    expected: target.workspaceId,
  },
  signIn: {
    url: `${target.url}/console/session`,
    headers: { ...json, origin: target.url },
    body: JSON.stringify({ token: target.ownerToken }),
    expected: target.workspaceId,
  },
};

let samples: Sample[] = [];
let pending = new Set<Promise<void>>();

async function send(kind: Kind, into: Sample[]): Promise<void> {
  const { expected, ...request } = REQUESTS[kind];
  const { status, text, ms, firstMs, failure } = await exchange(request);
  const [, code] = /event: error\ndata: .*?"code":"(\w+)"/.exec(text) ?? [];
  const wrong = text.includes(expected) ? undefined : code ? `event ${code}` : `wrong body: ${text.slice(-200)}`;
  const error = failure ?? (status === 200 ? wrong : String(status));
  into.push({ kind, ms, firstMs, ...(error === undefined ? {} : { error }) });
}

for (const [i, kind] of (Object.keys(RATES) as Kind[]).entries()) {
  const every = 1_000 / RATES[kind];
  let due = performance.now() + i * 7;
  const tick = () => {
    const all = pending;
    const sent = send(kind, samples);
    all.add(sent);
    void sent.finally(() => all.delete(sent));
    due += every;
    setTimeout(tick, Math.max(0, due - performance.now()));
  };
  setTimeout(tick, i * 7);
}

answer({
  begin() {
    samples = [];
    pending = new Set();
  },
  /** Waits for the requests that were sent since `begin`. */
  async end(): Promise<Figures> {
    const [measured, rest] = [samples, pending];
    samples = [];
    pending = new Set();
    await Promise.all(rest);
    return figuresOf(measured);
  },
});
