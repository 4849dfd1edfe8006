import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { mock } from "node:test";
import { pino } from "pino";
import { test } from "vitest";
import { openJournal } from "../../src/admission/journal.ts";
import { isSettlementRow, PostJournal, type SettlementRow } from "../../src/admission/post-journal.ts";
import { makeFolder, QUIET } from "../helpers/books.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const ROW: SettlementRow = { id: "gen_1", request_id: "a", created_at: "2026-05-06T07:08:09.000Z", credits_micro: "7" };

const postOf = (requestId: string) => ({ requestId, charge: 5, output: 3, row: ROW });

/** A journal of settlements in a folder, whose disk the test can break and whose time it passes. */
async function setUp(t: Lifetime, folder?: string) {
  const state = { now: 1_000, fails: false, logged: [] as string[], written: [] as string[] };
  const { mock: now } = mock.method(performance, "now", () => state.now);
  t.onTestFinished(() => now.restore());
  const path = folder ?? (await makeFolder(t));
  const onDisk = await openJournal<SettlementRow>(path, QUIET, isSettlementRow);
  const orFail = <Of extends unknown[]>(run: (...of: Of) => Promise<void>) => {
    return async (...of: Of) => {
      if (state.fails) throw new Error("the disk is full");
      await run(...of);
    };
  };
  const [append, drop] = [orFail(onDisk.append), orFail(onDisk.drop)];
  const log = pino({ level: "warn" }, { write: (line) => void state.logged.push(JSON.parse(line).msg) });
  const journal = new PostJournal({ ...onDisk, append, drop }, "r1", log);
  journal.onWritten = (ids, isWritten) => void state.written.push(`${ids} ${isWritten}`);
  t.onTestFinished(() => journal.close());
  /** Writes settlements and waits until they are on the disk. */
  const write = async (...ids: string[]) => {
    const before = state.written.length;
    journal.write("ws_1", ids.map(postOf));
    await settled(() => state.written.length > before);
  };
  const settled = async (holds: () => boolean) => {
    while (!holds()) await new Promise(setImmediate);
  };
  return { state, journal, write, folder: path };
}

const linesIn = async (folder: string) => {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".jsonl"));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts.join("").split("\n").length - 1;
};

for (const [what, of, isRow] of [
  ["is complete", {}, true],
  ["costs nothing", { credits_micro: "0" }, true],
  ["costs the most", { credits_micro: "9".repeat(18) }, true],
  ["costs more", { credits_micro: "9".repeat(19) }, false],
  ["costs less than nothing", { credits_micro: "-7" }, false],
  ["has a charge with a fraction", { credits_micro: "7.5" }, false],
  ["has no charge", { credits_micro: undefined }, false],
  ["has no identifier", { id: undefined }, false],
  ["has an empty identifier", { id: "" }, false],
  ["has a number as identifier", { id: 7 }, false],
  ["has no request", { request_id: undefined }, false],
  ["has no time", { created_at: undefined }, false],
  ["has a time that is none", { created_at: "soon" }, false],
  ["has a number as time", { created_at: 2026 }, false],
] as const) {
  test(`${isRow ? "takes" : "does not take"} a row of a file that ${what}`, () => {
    assert.equal(isSettlementRow({ ...ROW, ...of }), isRow);
  });
}

test("keeps settlements until the database has them, and knows how many wait", async (t) => {
  const { state, journal, write, folder } = await setUp(t);
  assert.equal(journal.size, 0);
  const written = write("a", "b");
  assert.equal(journal.size, 2);
  await written;
  assert.deepEqual([journal.size, state.written], [2, ["a,b true"]]);
  journal.write("ws_1", [postOf("c")]);
  assert.equal(journal.size, 3);
  for (const id of ["a", "b", "c", "unknown"]) journal.remove(id);
  await journal.close();
  assert.deepEqual([journal.size, state.written, state.logged], [0, ["a,b true", "c true"], []]);
  assert.deepEqual(await readdir(folder), []);
});

test("removes at once, with its end, what reached the database while it was written", async (t) => {
  const { journal, write } = await setUp(t);
  const written = write("a", "b");
  journal.remove("a");
  assert.equal(journal.size, 2);
  await written;
  assert.equal(journal.size, 1);
  // What is written again later is no longer in the database's hands.
  journal.remove("b");
  await write("b");
  assert.equal(journal.size, 1);
});

test("gives the next process what waits, each request once, with the replica that admitted it", async (t) => {
  const { journal, write, folder } = await setUp(t);
  await write("a");
  await journal.close();
  // As two processes leave it, one of which did not notice that the other had taken its file.
  const other = await openJournal<SettlementRow>(folder, QUIET);
  const [entry] = other.pending();
  assert.ok(entry);
  await other.append([entry, { workspaceId: "ws_2", row: ROW_OF_AN_EARLIER_VERSION }]);
  await other.close();

  const next = await setUp(t, folder);
  const posts = next.journal.recovered().map(({ workspaceId, post: { row, ...post } }) => ({ workspaceId, ...post }));
  assert.deepEqual(posts, [
    { workspaceId: "ws_1", requestId: "a", charge: 5, output: 3, admittedBy: "r1" },
    { workspaceId: "ws_2", requestId: "old", charge: 7, output: 4, admittedBy: "" },
  ]);
  assert.equal(next.journal.size, 2);
  for (const id of ["a", "old"]) next.journal.remove(id);
  await next.journal.close();
  assert.deepEqual(await readdir(folder), []);
});

const ROW_OF_AN_EARLIER_VERSION: SettlementRow = { ...ROW, request_id: "old", output_tokens: 4 };

test("sets aside what the database refuses, and nothing that it does not have", async (t) => {
  const { journal, write, folder } = await setUp(t);
  await write("a", "b");
  journal.refuse("unknown");
  journal.refuse("a");
  assert.equal(journal.size, 1);
  journal.remove("b");
  await journal.close();
  assert.deepEqual(await readdir(folder), ["refused"]);
  const [line = "", ...more] = (await readFile(join(folder, "refused"), "utf8")).split("\n");
  assert.deepEqual([JSON.parse(line).row.request_id, more], ["a", [""]]);
});

test("says once that the database is unavailable, until it answers again", async (t) => {
  const { state, journal } = await setUp(t);
  for (let i = 0; i < 2; i++) journal.unavailable(new Error("connect ECONNREFUSED"));
  const line = "the database is unavailable; settlements wait in the journal";
  assert.deepEqual(state.logged.splice(0), [line]);
  journal.available();
  journal.unavailable(new Error("connect ECONNREFUSED"));
  assert.deepEqual(state.logged, [line]);
});

test("lets one request a second through while nothing takes settlements", async (t) => {
  const { state, journal, write } = await setUp(t);
  const isOpen = () => {
    try {
      journal.checkWritable();
      return true;
    } catch (error) {
      assert.equal((error as { kind?: string }).kind, "overloaded");
      return false;
    }
  };
  assert.equal(isOpen(), true);
  state.fails = true;
  await write("a");
  assert.deepEqual([journal.size, state.written], [0, ["a false"]]);
  assert.equal(isOpen(), false);
  state.now += 999;
  assert.equal(isOpen(), false);
  state.now += 1;
  assert.deepEqual([isOpen(), isOpen()], [true, false]);
  state.now += 500;
  // The request that was let through has failed, too. One line of the log is enough.
  await write("b");
  assert.deepEqual(state.logged, ["could not write to the journal in DATA_DIR"]);
  state.now += 999;
  assert.equal(isOpen(), false);
  journal.available();
  assert.deepEqual([isOpen(), isOpen()], [true, true]);
  await write("c");
  assert.equal(state.logged.length, 2);
});

test("logs that it could not remove something, and goes on", async (t) => {
  const { state, journal, write, folder } = await setUp(t);
  await write("a");
  state.fails = true;
  journal.remove("a");
  await journal.close();
  assert.deepEqual(state.logged, ["could not update the journal in DATA_DIR"]);
  state.fails = false;
  await write("b");
  assert.equal(await linesIn(folder), 2);
});

test("waits at its end for what is being written, and then closes the file", async (t) => {
  const { state, journal, folder } = await setUp(t);
  journal.write("ws_1", [postOf("a")]);
  await journal.close();
  assert.deepEqual([state.written, await linesIn(folder)], [["a true"], 1]);
});
