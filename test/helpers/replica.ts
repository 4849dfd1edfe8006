import assert from "node:assert/strict";
import { Escrow } from "../../src/admission/escrow/escrow.ts";
import type { Command, Event } from "../../src/admission/escrow/events.ts";
import {
  type Headroom,
  type Item,
  type Mode,
  NOTHING,
  type Reply,
  type Verdict,
} from "../../src/admission/escrow/exchange.ts";

/** Headroom for many requests. */
export const PLENTY: Headroom = { credit: 1_000, running: 100, requests: 100, input: 1_000, output: 1_000 };

interface RequestOf {
  key?: string;
  hold?: number;
  workspace?: string;
  subjects?: readonly string[];
}

/** A replica with a heartbeat at 0, whose statements the test answers. */
export class Replica {
  readonly escrow = new Escrow("r1");
  /** Items that are sent and not answered. */
  sent: Record<Mode, readonly Item[]> = { append: [], exchange: [] };

  constructor() {
    this.tell({ type: "beat", sentAt: 0, isDeaf: false }, 0);
  }

  /** @returns the commands, without those to send */
  tell(event: Event, now: number): Command[] {
    const commands = this.escrow.handle(event, now);
    for (const command of commands) {
      if (command.type !== "send") continue;
      for (const { mode } of command.items) assert.equal(mode, command.mode);
      this.sent[command.mode] = command.items;
    }
    return commands.filter(({ type }) => type !== "send");
  }

  request(requestId: string, now: number, of: RequestOf = {}): Command[] {
    const { hold = 10, workspace = "ws_1", key, subjects } = of;
    const ask = {
      ...{ requestId, hold, input: 1 },
      ...(key === undefined ? {} : { key, body: "b" }),
      ...(subjects ? { subjects } : {}),
    };
    return this.tell({ type: "request", workspace, ...ask }, now);
  }

  settle(requestId: string, now: number, charge = 5): Command[] {
    return this.tell({ type: "settle", posts: [{ requestId, charge, output: 1, row: {} }] }, now);
  }

  /** Answers what is sent, in the mode that has something in flight. */
  receive(now: number, ...replies: (Reply | undefined)[]): Command[] {
    const mode = this.sent.exchange.length > 0 ? "exchange" : "append";
    this.sent[mode] = [];
    return this.tell({ type: "receive", mode, replies }, now);
  }

  fail(now: number): Command[] {
    const mode = this.sent.exchange.length > 0 ? "exchange" : "append";
    this.sent[mode] = [];
    return this.tell({ type: "fail", mode }, now);
  }

  get items(): readonly Item[] {
    return [...this.sent.append, ...this.sent.exchange];
  }

  get item(): Item {
    const [item] = this.items;
    assert.ok(item, "nothing is sent");
    return item;
  }
}

/** The answer to an item. */
export function done(verdicts: readonly Verdict[] = [], extra: Partial<Headroom> = {}, isOver = false): Reply {
  const none = { grant: 7, charges: {}, minute: 60_000, msLeft: 30_000, isOver };
  return { state: "done", verdicts, ...none, extra: { ...NOTHING, ...extra } };
}

/** A replica that runs q0 and q1, and has headroom for many more. */
export function running(): Replica {
  const replica = new Replica();
  replica.request("q0", 0);
  replica.receive(0, done([{}]));
  replica.request("q1", 1);
  replica.receive(1, done([{}], PLENTY));
  return replica;
}

/** Commands with the requests that they are about. */
export function named(commands: readonly Command[]): string[] {
  return commands.map((command) => `${command.type} ${"requestId" in command ? command.requestId : ""}`.trim());
}
