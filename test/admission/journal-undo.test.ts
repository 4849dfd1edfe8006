import assert from "node:assert/strict";
import { type FileHandle, open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { openJournal } from "../../src/admission/journal.ts";
import { makeFolder, QUIET } from "../helpers/books.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const entry = (n: number) => ({ workspaceId: "ws_1", row: { n } });

async function filesIn(folder: string): Promise<string[][]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".jsonl"));
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts.map((text) => text.split("\n")).sort();
}

/** Counts the syncs of files and folders, and lets some fail, as a disk does that is full or broken. */
async function watchSyncs(t: Lifetime) {
  const handle = await open(process.execPath, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const { sync, datasync } = prototype;
  const state = { folders: 0, files: 0, fails: false, handles: [] as FileHandle[] };
  prototype.sync = async function (this: FileHandle) {
    state.folders += 1;
    await sync.call(this);
  };
  prototype.datasync = async function (this: FileHandle) {
    state.files += 1;
    state.handles.push(this);
    if (state.fails) throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
    await datasync.call(this);
  };
  t.onTestFinished(() => {
    Object.assign(prototype, { sync, datasync });
  });
  return state;
}

test("takes a failed write out of the file, so that the next process charges nothing for it", async (t) => {
  const folder = await makeFolder(t);
  const syncs = await watchSyncs(t);
  const journal = await openJournal(folder, QUIET);
  await journal.append([entry(1)]);
  await journal.append([entry(2)]);
  const before = await filesIn(folder);
  syncs.fails = true;
  await assert.rejects(journal.append([entry(3)]), { code: "EIO" });
  assert.deepEqual(await filesIn(folder), before);
  // The next one goes to a new file. If it fails, too, the file is removed.
  await assert.rejects(journal.append([entry(4)]), { code: "EIO" });
  assert.deepEqual(await filesIn(folder), before);
  syncs.fails = false;
  await journal.append([entry(5)]);
  assert.deepEqual((await filesIn(folder)).map((lines) => lines.length - 1).sort(), [1, 2]);
  assert.deepEqual(journal.pending(), [entry(1), entry(2), entry(5)]);
  const next = await openJournal(folder, QUIET);
  assert.deepEqual(
    next
      .pending()
      .map(({ row }) => (row as { n: number }).n)
      .sort(),
    [1, 2, 5],
  );
  await next.drop(next.pending());
  assert.deepEqual(await readdir(folder), []);
  await next.close();
  await journal.close();
});

test("syncs a new file and its folder once, and then the file for each write", async (t) => {
  const folder = await makeFolder(t);
  const syncs = await watchSyncs(t);
  const journal = await openJournal(folder, QUIET);
  await journal.append([entry(1)]);
  assert.deepEqual([syncs.folders, syncs.files], [1, 1]);
  await journal.append([entry(2), entry(3)]);
  assert.deepEqual([syncs.folders, syncs.files], [1, 2]);
  const [name = ""] = await readdir(folder);
  assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600);
  await journal.drop(journal.pending());
  await journal.append([entry(4)]);
  assert.deepEqual([syncs.folders, syncs.files], [2, 3]);
  assert.notEqual(syncs.handles.at(-1)?.fd, -1);
  await journal.close();
  assert.deepEqual([...new Set(syncs.handles.map(({ fd }) => fd))], [-1]);
});

test("syncs what it sets aside", async (t) => {
  const folder = await makeFolder(t);
  const syncs = await watchSyncs(t);
  await writeFile(join(folder, "left.jsonl"), "damaged\n");
  const journal = await openJournal(folder, QUIET);
  assert.equal(syncs.folders, 1);
  await journal.refuse(entry(1));
  assert.equal(syncs.folders, 2);
  await journal.close();
});
