import { randomUUID } from "node:crypto";
import pg from "pg";
import { Grants } from "../../src/admission/grants.ts";
import { openJournal } from "../../src/admission/journal.ts";
import { PostJournal } from "../../src/admission/post-journal.ts";
import type { SettlementRow } from "../../src/admission/settle.ts";
import type { Pool } from "../../src/store/pool.ts";
import { makeFolder, QUIET } from "./books.ts";
import type { Lifetime } from "./lifetime.ts";

/** Creates grants of a replica, which get call-backs over LISTEN. */
export async function makeGrants(
  t: Lifetime,
  { pool, url }: { pool: Pool; url: string },
  replica: string,
  folder?: string,
): Promise<Grants> {
  const journal = await openJournal<SettlementRow>(folder ?? (await makeFolder(t)), QUIET);
  const grants = new Grants({ pool, journal: new PostJournal(journal, replica, QUIET), replica, log: QUIET });
  const listener = new pg.Client(url);
  await listener.connect();
  listener.on("notification", ({ payload = "" }) => grants.callBack(payload));
  await listener.query("listen chorus_call_back");
  const beat = () => grants.beat(performance.now(), 2);
  beat();
  const beats = setInterval(beat, 1_000);
  t.onTestFinished(async () => {
    clearInterval(beats);
    await grants.close();
    await listener.end();
  });
  return grants;
}

/** Admits a request of `ws_1`. @returns its identifier */
export async function admit(grants: Grants, { hold = 100, input = 1 } = {}): Promise<string> {
  const requestId = randomUUID();
  await grants.admit("ws_1", { requestId, hold, input });
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
