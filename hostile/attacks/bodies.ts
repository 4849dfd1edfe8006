import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { exchange } from "../exchange.ts";
import type { Attack, AttackScenario } from "../scenario.ts";
import { atRate, openSocket, wholeRequest } from "./sockets.ts";

const LARGEST = 64 * 1_024 * 1_024;

/** Large bodies. Most are refused at the end, and must not stop others until then. */
const BODIES: Readonly<Record<string, { what: string; text: () => string }>> = {
  quotes: { what: "a prompt of 64 MB of escaped quotes", text: () => `{"prompt":"${'\\"'.repeat(LARGEST / 2 - 10)}"}` },
  messages: {
    what: "40 messages of 1.5 MB",
    text: () => messages(Array.from({ length: 40 }, () => "lorem ipsum dolor ".repeat(86_000))),
  },
  prompt: {
    what: "40 messages of 200,000 characters without a space",
    text: () => messages(fill(40, "ab".repeat(100_000))),
  },
  nested: { what: "a value nested 50,000 deep", text: () => `{"prompt":"a","x":${"[".repeat(5e4)}${"]".repeat(5e4)}}` },
  values: { what: "99,000 values", text: () => `{"prompt":"a","x":[${"1,".repeat(98_990)}1]}` },
  members: {
    what: "45,000 unknown members",
    text: () => `{"prompt":"a",${Array.from({ length: 45_000 }, (_, i) => `"k${i}":1`).join()}}`,
  },
  schema: { what: "a schema of 32 KB with patterns", text: () => schemaRequest(600) },
  "large-schema": { what: "a schema of 4 MB", text: () => schemaRequest(80_000) },
  attachments: { what: "5 attachments of 9 MB", text: () => JSON.stringify(attachmentRequest()) },
};

/** Each kind from a key without credit and from one that pays, three at a time. */
export const LARGE_BODIES: readonly AttackScenario[] = [
  ...Object.entries(BODIES).map(
    ([name, { what, text }]): AttackScenario => ({
      name: `body-${name}`,
      what: `${what}, three requests at a time`,
      attackers: [{}, { credits: 1_000_000, tier: "unlimited" }],
      attack: (attack) => sendBodies(attack, text()),
    }),
  ),
  {
    name: "body-left",
    what: "200 connections a second that send a body of 100 KB and close",
    attackers: [{ credits: 1_000_000, tier: "unlimited" }],
    attack: leaveBodies,
  },
];

async function leaveBodies(attack: Attack): Promise<void> {
  const request = wholeRequest(attack.url, attack.keys[0] ?? "", { prompt: "lorem ipsum ".repeat(8_000) });
  await atRate(attack, 200, () => {
    const socket = openSocket(attack, attack.url);
    attack.count("opened");
    socket.write(request, () => setTimeout(() => socket.destroy(), 10 * Math.random()));
  });
}

async function sendBodies(attack: Attack, body: string): Promise<void> {
  const { url, keys, signal } = attack;
  const loop = async (key: string) => {
    // The service hashes a request with an idempotency key.
    const headers = { "content-type": "application/json", "x-api-key": key, "idempotency-key": randomUUID() };
    while (!signal.aborted) {
      const { status, ms, failure } = await exchange({ url: `${url}/v1/generate`, headers, body });
      if (signal.aborted) return;
      attack.count(failure ?? String(status));
      attack.longest("response", ms);
      await sleep(50);
    }
  };
  const [free = "", paying = ""] = keys;
  await Promise.all([free, paying, paying].map(loop));
}

function fill(length: number, text: string): string[] {
  return Array.from({ length }, () => text);
}

function messages(texts: readonly string[]): string {
  return JSON.stringify({ messages: texts.map((content) => ({ role: "user", content })), max_tokens: 100 });
}

function schemaRequest(count: number): string {
  const properties = Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`p${i}`, { type: "string", pattern: `^(a|b${i})+$` }]),
  );
  const schema = { type: "object", properties };
  return JSON.stringify({ prompt: "a", response_format: { type: "json_schema", schema }, max_tokens: 100 });
}

function attachmentRequest(): object {
  const data = Buffer.from(`<html><body>${"<div><b>word</b> other</div>".repeat(340_000)}`).toString("base64");
  return {
    prompt: "a",
    attachments: fill(5, data).map((data) => ({ data, media_type: "text/html" })),
    max_tokens: 100,
  };
}
