import { randomUUID } from "node:crypto";
import pg from "pg";
import { CALL_BACK, Grants } from "../../src/admission/grants.ts";
import { openJournal } from "../../src/admission/journal.ts";
import { PostJournal, type SettlementRow } from "../../src/admission/post-journal.ts";
import type { Pool } from "../../src/store/pool.ts";
import { makeFolder, QUIET } from "./books.ts";
import type { Lifetime } from "./lifetime.ts";

interface Options {
  /** Folder of the journal. Default: a new temporary one. */
  folder?: string | undefined;
  /** The time in milliseconds since 1970. Default: the database's clock. */
  clock?: (() => number) | undefined;
  /** Whether it knows that call-backs may be lost. */
  isDeaf?: boolean;
}

/**
 * Creates grants of a replica. With `url` they get call-backs over LISTEN. They wait long for headroom of other
 * replicas, because the machine can be busy.
 */
export async function makeGrants(
  t: Lifetime,
  { pool, url }: { pool: Pool; url?: string | undefined },
  replica: string,
  { folder, clock, isDeaf = false }: Options = {},
): Promise<Grants> {
  const journal = await openJournal<SettlementRow>(folder ?? (await makeFolder(t)), QUIET);
  const posts = new PostJournal(journal, replica, QUIET);
  const grants = new Grants({ pool, journal: posts, replica, log: QUIET, clock, callBackMs: 20_000 });
  const stop = url === undefined ? undefined : await listen(url, (workspace) => grants.callBack(workspace));
  const beat = () => grants.beat(performance.now(), 2, !isDeaf);
  beat();
  const beats = setInterval(beat, 1_000);
  grants.recover();
  t.onTestFinished(async () => {
    clearInterval(beats);
    await grants.close();
    await stop?.();
  });
  return grants;
}

/** Listens for call-backs. @returns a function that stops it */
export async function listen(url: string, onCallBack: (workspace: string) => void): Promise<() => Promise<void>> {
  const listener = new pg.Client(url);
  await listener.connect();
  listener.on("notification", ({ payload = "" }) => onCallBack(payload));
  await listener.query(`listen ${CALL_BACK}`);
  return () => listener.end();
}

/** Admits a request. @returns its identifier */
export async function admit(grants: Grants, { workspace = "ws_1", hold = 100, input = 1 } = {}): Promise<string> {
  const requestId = randomUUID();
  await grants.admit(workspace, { requestId, hold, input });
  return requestId;
}

/** Settles a request. @returns what is charged */
export function settle(
  grants: Grants,
  requestId: string,
  { charge = 100, output = 1, row = {} }: { charge?: number; output?: number; row?: object } = {},
): Promise<number> {
  const columns = {
    id: `gen_${requestId}`,
    created_at: new Date(),
    key_id: "key_1",
    streamed: false,
    shape: "text",
    effort: "auto",
    level: "low",
    input_tokens: 1,
    cached_tokens: 0,
    outcome: "ok",
    latency_ms: 1,
  };
  return grants.settle({ requestId, charge, output, row: { ...columns, ...row } });
}
