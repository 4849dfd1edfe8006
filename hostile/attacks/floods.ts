import { PROMPT } from "../answer.ts";
import type { Attack, AttackScenario } from "../scenario.ts";
import { atRate, openSocket, untilEnd, wholeRequest } from "./sockets.ts";

const ASK = { prompt: PROMPT, effort: "low", max_tokens: 100 };
const RATE = 2_000;

/** Requests that are refused, as fast as the attacker can, and connections without requests. */
export const FLOODS: readonly AttackScenario[] = [
  {
    name: "flood-401",
    what: `${RATE} requests a second with invented keys, each another one`,
    attack: (attack) => flood(attack, (i) => wholeRequest(attack.url, `ck_invented_${i}`, ASK)),
  },
  {
    name: "flood-402",
    what: `${RATE} requests a second of a workspace without credit`,
    attackers: [{ tier: "unlimited" }],
    attack: (attack) => flood(attack, () => wholeRequest(attack.url, attack.keys[0] ?? "", ASK)),
  },
  {
    name: "flood-422",
    what: `${RATE} requests a second with an invalid field`,
    attackers: [{ credits: 1_000_000, tier: "unlimited" }],
    attack: (attack) =>
      flood(attack, () => wholeRequest(attack.url, attack.keys[0] ?? "", { ...ASK, temperature: "warm" })),
  },
  {
    name: "flood-429",
    what: `${RATE} requests a second of a workspace that may send one a minute`,
    attackers: [{ credits: 1_000_000, limits: { requests_per_minute: 1 } }],
    attack: (attack) => flood(attack, () => wholeRequest(attack.url, attack.keys[0] ?? "", ASK)),
  },
  {
    name: "flood-burst",
    what: "1,000 requests at once each second, of a workspace with the limits of the lowest tier",
    attackers: [{ credits: 1_000_000 }],
    attack: (attack) => bursts(attack, wholeRequest(attack.url, attack.keys[0] ?? "", ASK)),
  },
  {
    name: "flood-sign-in",
    what: "500 sign-ins a second with invented tokens, each from the same address",
    attack: (attack) => flood(attack, (i) => signIn(attack.url, `ow_invented_${i}`), 500),
  },
  {
    name: "pipelined",
    what: "20 connections with 500 requests each that do not wait for a response",
    attackers: [{ credits: 1_000_000 }],
    attack: pipelined,
  },
  {
    name: "connections",
    what: "2,000 connections a second that are closed at once, or reset",
    attack: connections,
  },
];

/** Sends at a constant rate over 100 kept connections, without waiting. */
async function flood(attack: Attack, requestOf: (i: number) => string, perSecond = RATE): Promise<void> {
  const sockets = Array.from({ length: 100 }, () => openSocket(attack, attack.url));
  await atRate(attack, perSecond, (i) => {
    const at = i % sockets.length;
    const socket = sockets[at];
    if (socket?.writable) socket.write(requestOf(i));
    else sockets[at] = openSocket(attack, attack.url);
    attack.count("sent");
  });
}

async function bursts(attack: Attack, request: string): Promise<void> {
  await atRate(attack, 1, () => {
    for (let i = 0; i < 1_000; i++) {
      const socket = openSocket(attack, attack.url);
      socket.write(request);
      socket.on("data", () => socket.destroy());
    }
  });
}

async function pipelined(attack: Attack): Promise<void> {
  const request = wholeRequest(attack.url, attack.keys[0] ?? "", ASK);
  for (let i = 0; i < 20; i++) openSocket(attack, attack.url).write(request.repeat(500));
  await untilEnd(attack);
}

async function connections(attack: Attack): Promise<void> {
  await atRate(attack, RATE, (i) => {
    const socket = openSocket(attack, i % 4 === 0 ? attack.rpcUrl : attack.url);
    attack.count("opened");
    socket.on("connect", () => (i % 2 === 0 ? socket.resetAndDestroy() : socket.destroy()));
  });
}

function signIn(url: string, token: string): string {
  const body = JSON.stringify({ token });
  const { host } = new URL(url);
  const headers = `Host: ${host}\r\nOrigin: ${url}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST /console/session HTTP/1.1\r\n${headers}\r\n\r\n${body}`;
}
