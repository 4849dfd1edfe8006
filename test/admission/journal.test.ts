import assert from "node:assert/strict";
import { readdir, readFile, rename, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { test } from "vitest";
import { openJournal } from "../../src/admission/journal.ts";
import { makeFolder, QUIET } from "../helpers/books.ts";

const entry = (n: number) => ({ workspaceId: `ws_${n % 3}`, row: { n, text: `“${n}”\n` } });
const entries = (...numbers: number[]) => numbers.map(entry);

async function journalFiles(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith(".jsonl"));
}

async function numbersIn(folder: string): Promise<number[]> {
  const texts = await Promise.all((await journalFiles(folder)).map((name) => readFile(join(folder, name), "utf8")));
  return texts
    .flatMap((text) => text.split("\n").filter((line) => line !== ""))
    .map((line) => JSON.parse(line.slice(9)).row.n)
    .sort((a, b) => a - b);
}

test("writes appended entries to disk and reads them after a restart", async (t) => {
  const folder = join(await makeFolder(t), "not", "there", "yet");
  const journal = await openJournal(folder, QUIET);
  assert.deepEqual(await readdir(folder), []);
  await journal.append(entries(1, 2));
  assert.deepEqual(await numbersIn(folder), [1, 2]);
  await journal.append(entries(3));
  assert.deepEqual(journal.pending(), entries(1, 2, 3));
  // As after a kill: the first journal is not closed.
  const next = await openJournal(folder, QUIET);
  assert.deepEqual(next.pending(), entries(1, 2, 3));
  await next.drop(next.pending().slice(0, 1));
  assert.deepEqual(next.pending(), entries(2, 3));
  await next.append(entries(4));
  await next.close();
  const last = await openJournal(folder, QUIET);
  assert.deepEqual(
    last
      .pending()
      .map(({ row }) => (row as { n: number }).n)
      .sort(),
    [1, 2, 3, 4],
  );
  await last.drop(last.pending());
  assert.deepEqual(await readdir(folder), []);
  await last.append(entries(5));
  await last.drop(last.pending());
  assert.deepEqual(await readdir(folder), []);
  await last.close();
  await journal.close();
});

test("keeps the entries of a running process on disk after another process took over its journal", async (t) => {
  const folder = await makeFolder(t);
  const one = await openJournal(folder, QUIET);
  await one.append(entries(1));
  const two = await openJournal(folder, QUIET);
  assert.deepEqual(two.pending(), entries(1));
  await two.drop(two.pending());
  assert.deepEqual(await numbersIn(folder), []);
  await one.append(entries(2));
  assert.deepEqual(await numbersIn(folder), [1, 2]);
  await one.drop(one.pending());
  assert.deepEqual(await readdir(folder), []);
  await one.close();
  await two.close();
});

test("loses no appended entry when processes take over journals from each other in any order", async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom("append", "open", "drop"), { maxLength: 12 }), async (steps) => {
      const folder = await makeFolder(t);
      const journals = [await openJournal(folder, QUIET)];
      const appended = new Set<number>();
      const dropped = new Set<number>();
      let n = 0;
      const pending: Promise<unknown>[] = [];
      for (const [i, step] of steps.entries()) {
        const journal = journals[i % journals.length];
        if (step === "append") {
          const number = n++;
          pending.push(journal?.append(entries(number)).then(() => appended.add(number)) ?? Promise.resolve());
        } else if (step === "open") journals.push(await openJournal(folder, QUIET));
        else {
          const entriesToDrop = journal?.pending() ?? [];
          for (const { row } of entriesToDrop) dropped.add((row as { n: number }).n);
          pending.push(journal?.drop(entriesToDrop) ?? Promise.resolve());
        }
      }
      await Promise.all(pending);
      const onDisk = new Set(await numbersIn(folder));
      for (const number of appended) assert.ok(dropped.has(number) || onDisk.has(number), `${number} is lost`);
      for (const journal of journals) await journal.close();
    }),
    { numRuns: 60 },
  );
});

test("loses no entry that is appended while several processes take over journals one after the other", async (t) => {
  for (let round = 0; round < 60; round++) {
    const folder = await makeFolder(t);
    const journal = await openJournal(folder, QUIET);
    const appending = journal.append(entries(round));
    const taken: unknown[] = [];
    for (let i = 0; i < 8; i++) {
      const other = await openJournal(folder, QUIET);
      taken.push(...other.pending());
      await other.drop(other.pending());
      await other.close();
    }
    await appending;
    if (taken.length === 0) assert.deepEqual(await numbersIn(folder), [round]);
    await journal.close();
  }
});

test("skips a line that a crash cut off", async (t) => {
  const folder = await makeFolder(t);
  const one = await openJournal(folder, QUIET);
  await one.append(entries(1, 2));
  await one.close();
  const [name = ""] = await journalFiles(folder);
  await truncate(join(folder, name), (await stat(join(folder, name))).size - 10);
  const journal = await openJournal(folder, QUIET);
  assert.deepEqual(journal.pending(), entries(1));
  await journal.append(entries(3));
  await journal.drop(journal.pending());
  assert.deepEqual(await readdir(folder), []);
  await journal.close();
});

test("rejects a failed write, leaves nothing pending for it, and writes again afterwards", async (t) => {
  const folder = await makeFolder(t);
  const journal = await openJournal(folder, QUIET);
  await journal.append(entries(1));
  const [name = ""] = await journalFiles(folder);
  // The journal needs a new file after the takeover, and cannot create it without the folder.
  await rename(folder, `${folder}.gone`);
  t.onTestFinished(() => rm(`${folder}.gone`, { recursive: true, force: true }));
  await assert.rejects(journal.append(entries(2)), { code: "ENOENT" });
  assert.deepEqual(journal.pending(), entries(1));
  await rename(`${folder}.gone`, folder);
  await journal.append(entries(3));
  assert.deepEqual(journal.pending(), entries(1, 3));
  assert.ok((await numbersIn(folder)).includes(3));
  assert.ok((await journalFiles(folder)).includes(name));
  await journal.close();
});

test("moves entries that the database refuses to a file that only its owner can read", async (t) => {
  const folder = await makeFolder(t);
  const journal = await openJournal(folder, QUIET);
  await journal.append(entries(1, 2));
  await journal.refuse(entry(1));
  await journal.drop(journal.pending());
  assert.deepEqual(await readdir(folder), ["refused"]);
  assert.deepEqual(JSON.parse(await readFile(join(folder, "refused"), "utf8")), entry(1));
  assert.equal((await stat(join(folder, "refused"))).mode & 0o777, 0o600);
  const next = await openJournal(folder, QUIET);
  assert.deepEqual(next.pending(), []);
  await next.close();
  await journal.close();
});
