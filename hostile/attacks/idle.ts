import { connect } from "node:http2";
import { callAdmin } from "../environment.ts";
import type { Attack, AttackScenario, Stage } from "../scenario.ts";
import { atRate, head, openSocket, untilEnd } from "./sockets.ts";

const MB = 1_024 * 1_024;
const BOTH = [{}, { credits: 1_000 }] as const;

/** Connections that send little or nothing, and hold what the service keeps for them. */
export const IDLE: readonly AttackScenario[] = [
  {
    name: "idle-bodies",
    what: "4 connections announce 64 MB each and 296 a MB each, and send nothing; half of them without credit",
    attackers: BOTH,
    attack: (attack) => announce(attack, 300, 0),
    during: revoke,
  },
  {
    name: "trickled-bodies",
    what: "the same, and each sends a byte a second",
    attackers: BOTH,
    attack: (attack) => announce(attack, 300, 1_000),
    during: revoke,
  },
  {
    name: "idle-calls",
    what: "640 calls on one HTTP/2 connection announce 1 MB, 4 KB or 64 bytes each and send nothing",
    attackers: BOTH,
    attack: idleCalls,
    during: revoke,
  },
  {
    name: "slow-headers",
    what: "3,000 connections send half of their headers, a third of them a byte a second; what got 408 stays open",
    seconds: 60,
    mostSockets: 500,
    attack: slowHeaders,
  },
];

async function announce(attack: Attack, connections: number, everyMs: number): Promise<void> {
  const { url, keys } = attack;
  await atRate(
    attack,
    400,
    (i) => {
      // A service may keep room for small bodies that large ones cannot use.
      const headers = { "x-api-key": keys[i % keys.length] ?? "", "content-length": i < 4 ? 64 * MB : MB };
      const socket = openSocket(attack, url);
      socket.write(`${head(url, "/v1/generate", headers)}{"prompt":"`);
      if (everyMs > 0) trickle(socket, everyMs);
    },
    connections,
  );
  await untilEnd(attack);
}

async function idleCalls(attack: Attack): Promise<void> {
  const { rpcUrl, keys } = attack;
  const session = connect(rpcUrl);
  session.on("error", (error) => attack.count(error.message));
  session.on("goaway", () => attack.count("GOAWAY"));
  for (let i = 0; i < 640; i++) {
    const call = session.request({
      ":method": "POST",
      ":path": "/chorus.v1.GenerationService/Generate",
      "content-type": "application/proto",
      // Small ones fill what is left for the small bodies of others.
      "content-length": i < 255 ? MB : i < 510 ? 4_096 : 64,
      "x-api-key": keys[i % keys.length] ?? "",
    });
    call.on("response", (headers) => attack.count(String(headers[":status"])));
    call.on("error", () => attack.count("stream reset"));
    call.resume();
  }
  await untilEnd(attack);
}

async function slowHeaders(attack: Attack): Promise<void> {
  const { url } = attack;
  let open = 0;
  await atRate(
    attack,
    500,
    (i) => {
      const socket = openSocket(attack, url);
      open++;
      socket.on("close", () => open--);
      socket.write("POST /v1/generate HTTP/1.1\r\nHost: test\r\nX-Slow: ");
      if (i % 3 === 0) trickle(socket, 1_000);
    },
    3_000,
  );
  await untilEnd(attack);
  attack.count("still open at the end", open);
}

function trickle(socket: ReturnType<typeof openSocket>, everyMs: number): void {
  const timer = setInterval(() => socket.writable && socket.write("a"), everyMs);
  socket.on("close", () => clearInterval(timer));
}

/** An operator ends the attack by revoking the keys. */
async function revoke({ service, keyIds, ms }: Stage): Promise<string[]> {
  await new Promise((resolve) => setTimeout(resolve, ms / 2));
  const problems: string[] = [];
  for (const id of keyIds) {
    await callAdmin(service, "KeyService/RevokeKey", { id }).catch((error: Error) =>
      problems.push(`the operator could not revoke the key: ${error.message.slice(0, 200)}`),
    );
  }
  return problems;
}
