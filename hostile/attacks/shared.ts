import { createSecret } from "../../src/admission/secret.ts";
import { PROMPT } from "../answer.ts";
import { exchange } from "../exchange.ts";
import type { Attack, AttackScenario } from "../scenario.ts";
import { atRate, openSocket, untilEnd } from "./sockets.ts";

/** Resources that all callers share and that a request uses before, or without, credit. */
export const SHARED: readonly AttackScenario[] = [
  {
    name: "token-queue",
    what: "600 requests at a time, without credit, whose prompts of 200,000 characters have to be counted",
    seconds: 12,
    attack: (attack) => repeat(attack, 600, "/v1/generate", { prompt: "ab".repeat(100_000), max_tokens: 100 }),
  },
  {
    name: "effort-high",
    what: "8 requests at a time with the effort `high`, and long drafts",
    attackers: [{ credits: 1_000_000, tier: "unlimited" }],
    attack: (attack) => repeat(attack, 8, "/v1/generate", { prompt: `[long] ${PROMPT}`, effort: "high" }),
  },
  {
    name: "flood-metrics",
    what: "500 reports a second of a workspace without credit",
    attack: (attack) =>
      requests(attack, attack.url, 500, () => `GET /v1/metrics?interval=hour HTTP/1.1\r\nX-API-Key: ${attack.keys[0]}`),
  },
  {
    name: "flood-sessions",
    what: "2,000 requests a second with invented cookies of the console",
    attack: (attack) =>
      requests(
        attack,
        attack.url,
        2_000,
        () => `GET /console/session HTTP/1.1\r\nCookie: chorus_session=${createSecret("cs_")}`,
      ),
  },
  {
    name: "flood-tokens",
    what: "1,000 calls a second to the internal listener with invented operator tokens",
    attack: (attack) => requests(attack, attack.rpcUrl, 1_000, () => adminCall(createSecret("op_"))),
  },
  {
    name: "idle-connections",
    what: "3,000 connections that send nothing, while the service may open 2,000 files",
    seconds: 10,
    openFiles: 2_000,
    attack: idleConnections,
  },
];

/** Keeps this many requests in flight. */
async function repeat(attack: Attack, atOnce: number, path: string, body: object): Promise<void> {
  const { url, keys, signal } = attack;
  const headers = { "content-type": "application/json", "x-api-key": keys[0] ?? "" };
  const text = JSON.stringify(body);
  const loop = async () => {
    while (!signal.aborted) {
      const { status, ms, failure } = await exchange({ url: `${url}${path}`, headers, body: text });
      if (signal.aborted) return;
      attack.count(failure ?? String(status));
      attack.longest("response", ms);
    }
  };
  for (let i = 0; i < atOnce; i++) void loop();
  await untilEnd(attack);
}

/** Sends requests at a constant rate over 50 kept connections. @param headOf request line and headers */
async function requests(attack: Attack, url: string, perSecond: number, headOf: () => string): Promise<void> {
  const sockets = Array.from({ length: 50 }, () => openSocket(attack, url));
  await atRate(attack, perSecond, (i) => {
    const socket = sockets[i % sockets.length];
    const [line, ...rest] = headOf().split("\r\n");
    if (socket?.writable) socket.write([line, `Host: ${new URL(url).host}`, ...rest, "\r\n"].join("\r\n"));
    attack.count("sent");
  });
}

function adminCall(token: string): string {
  const lines = ["Content-Type: application/proto", "Content-Length: 0", `Authorization: Bearer ${token}`];
  return ["POST /chorus.admin.v1.WorkspaceService/ListWorkspaces HTTP/1.1", ...lines].join("\r\n");
}

async function idleConnections(attack: Attack): Promise<void> {
  let open = 0;
  await atRate(
    attack,
    600,
    () => {
      const socket = openSocket(attack, attack.url);
      open++;
      socket.on("close", () => open--);
    },
    3_000,
  );
  await untilEnd(attack);
  attack.count("still open at the end", open);
}
