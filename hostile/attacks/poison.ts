import { PROMPT } from "../answer.ts";
import { exchange } from "../exchange.ts";
import type { Attack, AttackScenario } from "../scenario.ts";
import { atRate } from "./sockets.ts";

/** What the vendor does with a prompt that contains the word. */
const KINDS = {
  400: "answers 400",
  403: "answers 403",
  404: "answers 404",
  413: "answers 413",
  422: "answers 422",
  500: "answers 500",
  filter: "filters the content",
  context: "finds too long for its context",
  garbage: "answers with no JSON",
};

const BURST = 10;

/** Prompts that fail for a reason of their own, several at once. They say nothing about the vendor. */
export const POISON: readonly AttackScenario[] = Object.entries(KINDS).map(([word, what]) => ({
  name: `poison-${word}`,
  what: `${BURST} requests each half second that the vendor ${what}`,
  attackers: [{ credits: 1_000_000, tier: "unlimited" }],
  attack: (attack) => atRate(attack, 2, () => void poison(attack, word)),
}));

async function poison(attack: Attack, word: string): Promise<void> {
  const { url, keys } = attack;
  const headers = { "content-type": "application/json", "x-api-key": keys[0] ?? "" };
  const body = JSON.stringify({ prompt: `[${word}] ${PROMPT}`, effort: "low", max_tokens: 100 });
  const send = async (i: number) => {
    const path = i % 2 === 0 ? "/v1/generate" : "/v1/generate:stream";
    const { status, text, failure } = await exchange({ url: `${url}${path}`, headers, body });
    const [, code = ""] = /"code":"(\w+)"/.exec(text) ?? [];
    attack.count(failure ?? `${status} ${code}`.trim());
  };
  await Promise.all(Array.from({ length: BURST }, (_, i) => send(i)));
}

/** V8 takes up to half a minute to prepare the first two, and for ever to search with the third. */
const PATTERNS = ["\\p{L}\\b".repeat(24), "\\W?".repeat(160), "(a+)+$", "(?:a{99}){99}", "(?=.*a)".repeat(70)];

/** Schemas whose patterns are hard to prepare or to match. Each is another one, so that nothing is kept. */
export const HARD_PATTERNS: AttackScenario = {
  name: "hard-patterns",
  what: "10 answers a second that are checked against hard patterns",
  attackers: [{ credits: 1_000_000, tier: "unlimited" }],
  attack: (attack) => atRate(attack, 10, (i) => void sendPatterns(attack, i)),
};

async function sendPatterns(attack: Attack, i: number): Promise<void> {
  const { url, keys } = attack;
  const headers = { "content-type": "application/json", "x-api-key": keys[0] ?? "" };
  const properties = Object.fromEntries(
    PATTERNS.map((pattern, at) => [`p${at}`, { type: "array", items: { type: "string", pattern: pattern + i } }]),
  );
  const body = JSON.stringify({
    messages: [{ role: "user", content: `[patterns] ${PROMPT}` }],
    response_format: { type: "json_schema", json_schema: { name: "p", schema: { type: "object", properties } } },
  });
  const { status, failure } = await exchange({ url: `${url}/v1/chat/completions`, headers, body });
  attack.count(failure ?? String(status));
}
