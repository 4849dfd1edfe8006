import { setImmediate as turn } from "node:timers/promises";
import { Grants, type GrantsParts } from "../../src/admission/grants.ts";
import type { PostJournal } from "../../src/admission/post-journal.ts";
import type { Pool } from "../../src/store/pool.ts";
import { QUIET } from "./books.ts";
import type { Lifetime } from "./lifetime.ts";

/** What a statement says of one workspace. */
export interface SentItem {
  workspace: string;
  asks?: { requestId: string }[];
  posts: { request_id: string }[];
  /** What it keeps. */
  credit: number;
  requests: number;
  input: number;
  output: number;
  spare: { n: number };
  close: boolean;
  subjects?: { subject: string; returns?: boolean }[];
}

/** A statement that the test answers. */
export interface Statement {
  name: "exchange" | "append_settlement" | "post_settlements";
  items: SentItem[];
  /** @param replies of `exchange()` by workspace, or the workspaces of `append_settlement()` */
  answer(replies: Readonly<Record<string, object>> | readonly string[]): Promise<void>;
  fail(error: Error): Promise<void>;
}

/** The items of a statement. One that is appended alone is not a list of JSON: what tests read of it. */
export function sentItems(text: string, values: readonly unknown[] = []): Partial<SentItem>[] {
  if (text.includes("append_settlement(")) {
    const [posts, subjects] = values.slice(-2).map((json) => JSON.parse(String(json ?? null)) ?? undefined);
    return [{ workspace: String(values[1]), posts, subjects }];
  }
  const sent = values.find((one): one is string => typeof one === "string" && one.startsWith("["));
  return JSON.parse(sent ?? "[]");
}

/** Grants over a database and a journal that the test plays. */
export function scripted(t: Lifetime, parts: Partial<GrantsParts> = {}) {
  const statements: Statement[] = [];
  const all: Statement[] = [];
  const left: ReturnType<PostJournal["recovered"]> = [];
  const journal = { calls: [] as string[], size: 0, error: undefined as Error | undefined, left };
  const play = { isAway: false };
  const query = (text: string, values: readonly unknown[] = []) => {
    const { promise, resolve, reject } = Promise.withResolvers<object[]>();
    const name = /post_settlements|append_settlement|exchange/.exec(text)?.[0] as Statement["name"];
    const settled = async (end: () => void) => {
      end();
      for (let i = 0; i < 3; i++) await turn();
    };
    const statement: Statement = {
      name,
      items: sentItems(text, values) as SentItem[],
      answer: (replies) => settled(() => resolve([Array.isArray(replies) ? { appended: replies } : { replies }])),
      fail: (error) => settled(() => reject(error)),
    };
    statements.push(statement);
    all.push(statement);
    if (play.isAway) reject(AWAY);
    else if (name === "post_settlements") resolve([]);
    return promise;
  };
  const pool = { query, tx: (run: (one: typeof query) => Promise<unknown>) => run(query) } as unknown as Pool;
  const noted =
    (name: string) =>
    (...of: unknown[]) =>
      void journal.calls.push([name, ...of.filter((one) => typeof one === "string")].join(" "));
  const played = {
    onWritten: (_: readonly string[], __: boolean): void => undefined,
    checkWritable() {
      if (journal.error) throw journal.error;
    },
    get size() {
      return journal.size;
    },
    recovered: () => journal.left,
    write: noted("write"),
    ...{ remove: noted("remove"), refuse: noted("refuse"), available: noted("available") },
    ...{ unavailable: noted("unavailable"), close: noted("close") },
  };
  const grants = new Grants({
    pool,
    journal: played as unknown as PostJournal,
    replica: "r1",
    log: QUIET,
    callBackMs: 20_000,
    ...parts,
  });
  grants.beat(performance.now(), 1, true);
  t.onTestFinished(() => {
    journal.size = 1;
    play.isAway = true;
    for (const one of all) void one.fail(AWAY);
    return grants.close();
  });
  const written = (ids: string[], isWritten: boolean) => played.onWritten(ids, isWritten);
  return { grants, statements, journal, play, written, take: () => statements.splice(0) };
}

/** The error of a database that cannot be reached. */
export const AWAY = Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect" });

/** The answer of `exchange()` to one item. */
export function doneRow({ extra = {}, ...of }: { extra?: object; [part: string]: unknown } = {}): object {
  const nothing = { credit: 0, running: 0, requests: 0, input: 0, output: 0 };
  const times = { minute: 60_000, msLeft: 30_000 };
  return {
    state: "done",
    grant: 7,
    verdicts: [{}],
    charges: {},
    isOver: false,
    ...times,
    ...of,
    extra: { ...nothing, ...extra },
  };
}

/** Headroom for many requests. */
export const AMPLE = { credit: 1_000, running: 100, requests: 100, input: 1_000, output: 1_000 };
