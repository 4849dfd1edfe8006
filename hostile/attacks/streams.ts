import { request } from "node:http";
import { PROMPT } from "../answer.ts";
import type { Attack, Attacker, AttackScenario } from "../scenario.ts";
import { atRate, sourceAddress, untilEnd } from "./sockets.ts";

const RICH: Attacker = { credits: 1_000_000, tier: "unlimited" };

/** Requests that stay open for long. */
export const STREAMS: readonly AttackScenario[] = [
  ...[1_150, 2_500, 5_000].map((count) => ({
    name: `streams-${count}`,
    what: `${count} open streams of one workspace; the vendor sends a token each 2 s`,
    seconds: 6 + count / 400,
    attackers: [RICH],
    attack: (attack: Attack) => openStreams(attack, { count, word: "slow" }),
  })),
  {
    name: "streams-keys",
    what: "1,500 open streams of one workspace with 50 keys",
    seconds: 10,
    attackers: [{ ...RICH, keys: 50 }],
    attack: (attack) => openStreams(attack, { count: 1_500, word: "slow" }),
  },
  {
    name: "streams-workspaces",
    what: "1,500 open streams of 30 workspaces of one owner",
    seconds: 10,
    attackers: Array.from({ length: 30 }, () => RICH),
    attack: (attack) => openStreams(attack, { count: 1_500, word: "slow" }),
  },
  {
    name: "descriptors",
    what: "1,200 open streams, while the service may open 1,000 files",
    seconds: 10,
    openFiles: 1_000,
    attackers: [RICH],
    attack: (attack) => openStreams(attack, { count: 1_200, word: "slow" }),
  },
  {
    name: "silent-vendor",
    what: "1,500 whole requests that the vendor accepts and never answers",
    seconds: 10,
    attackers: [RICH],
    attack: (attack) => openStreams(attack, { count: 1_500, word: "silent", path: "/v1/generate" }),
  },
  {
    name: "hanging-vendor",
    what: "1,500 streams for which the vendor sends headers and nothing more",
    seconds: 10,
    attackers: [RICH],
    attack: (attack) => openStreams(attack, { count: 1_500, word: "hang" }),
  },
  {
    name: "resetting-vendor",
    what: "20 requests a second whose connection the vendor resets",
    attackers: [RICH],
    attack: (attack) => openStreams(attack, { count: Infinity, perSecond: 20, word: "reset" }),
  },
  {
    name: "slow-readers",
    what: "200 streams of 8 MB that nobody reads",
    seconds: 12,
    attackers: [RICH],
    attack: (attack) => openStreams(attack, { count: 200, perSecond: 50, word: "flood", read: false }),
  },
];

interface Streams {
  count: number;
  /** Default 400. */
  perSecond?: number;
  /** What the vendor does. */
  word: string;
  /** Whether the attacker reads the answer. Default true. */
  read?: boolean;
  path?: string;
}

async function openStreams(attack: Attack, streams: Streams): Promise<void> {
  await atRate(attack, streams.perSecond ?? 400, (i) => openStream(attack, streams, i), streams.count);
  await untilEnd(attack);
}

/** Counts how one stream begins, and how it ends if that is before the attack. */
function openStream(attack: Attack, { word, read = true, path = "/v1/generate:stream" }: Streams, i: number): void {
  const { url, keys, signal, count } = attack;
  const startedAt = performance.now();
  const localAddress = sourceAddress();
  const sent = request(`${url}${path}`, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json", "x-api-key": keys[i % keys.length] ?? "" },
    ...(localAddress === undefined ? {} : { localAddress }),
  });
  const isOver = () => signal.aborted;
  sent.on("error", (error: NodeJS.ErrnoException) => isOver() || count(error.code ?? error.message));
  sent.on("response", (response) => {
    const { statusCode: status = 0, headers } = response;
    const ms = performance.now() - startedAt;
    if (status !== 200) {
      attack.longest("refusal", ms);
      const mustWait = status === 429 || status === 503;
      count(`${status}${mustWait && headers["retry-after"] === undefined ? " without Retry-After" : ""}`);
      response.resume();
      return;
    }
    count("200");
    if (!read) return;
    let tail = "";
    let hasText = false;
    response.on("data", (data: Buffer) => {
      tail = (tail + data.toString("latin1")).slice(-2_000);
      if (hasText || !tail.includes("event: delta")) return;
      hasText = true;
      count("first token");
      attack.longest("first token", performance.now() - startedAt);
    });
    response.on("error", () => undefined);
    response.on("close", () => {
      if (isOver() || tail.includes("event: done")) return;
      const [, code = ""] = /event: error\ndata: .*"code":"(\w+)"/.exec(tail) ?? [];
      count(code === "" ? "cut" : `error event ${code}`);
    });
  });
  sent.end(JSON.stringify({ prompt: `[${word}] ${PROMPT}`, effort: "low", max_tokens: 1_000 }));
}
