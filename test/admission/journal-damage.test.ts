import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { crc32 } from "node:zlib";
import { pino } from "pino";
import { test } from "vitest";
import { openJournal } from "../../src/admission/journal.ts";
import { makeFolder, QUIET } from "../helpers/books.ts";
import { until } from "../helpers/until.ts";

const entry = (n: number) => ({ workspaceId: "ws_1", row: { n } });
const isNumbered = (row: object): row is { n: number } => "n" in row && typeof row.n === "number";

/** A journal file that a process with these entries has left. */
async function leftFile(folder: string, ...numbers: number[]): Promise<{ path: string; lines: string[] }> {
  const journal = await openJournal(folder, QUIET);
  await journal.append(numbers.map(entry));
  await journal.close();
  const [name = ""] = (await readdir(folder)).filter((file) => file.endsWith(".jsonl"));
  const path = join(folder, name);
  return { path, lines: (await readFile(path, "utf8")).trimEnd().split("\n") };
}

test("sets damaged lines of every kind aside and takes the others", async (t) => {
  const folder = await makeFolder(t);
  const { path, lines } = await leftFile(folder, 1, 2, 3);
  const [one = "", two = "", three = ""] = lines;
  const damaged = [
    "",
    "null",
    "[]",
    "{}",
    "7",
    "",
    '{"workspaceId":"ws_1"}',
    two.slice(0, -2),
    two.replace('"n":2', '"n":9'),
    randomBytes(40).toString("latin1").replaceAll("\n", " "),
    "\0".repeat(100),
  ];
  // The first line is damaged, too.
  await writeFile(path, `${[...damaged, one, three].join("\n")}\n`, "latin1");
  const records: { file: string; lines: number[]; set_aside_in: string }[] = [];
  const log = pino({ level: "error" }, { write: (line) => void records.push(JSON.parse(line)) });
  const journal = await openJournal(folder, log, isNumbered);
  assert.deepEqual(journal.pending(), [entry(1), entry(3)]);
  assert.deepEqual(
    records.map(({ file, lines, set_aside_in }) => [file, lines, set_aside_in]),
    [[path, damaged.map((_, i) => i + 1), join(folder, "damaged")]],
  );
  assert.equal(journal.setAside().damaged, damaged.length);
  assert.equal(await readFile(join(folder, "damaged"), "latin1"), `${damaged.join("\n")}\n`);
  await journal.drop(journal.pending());
  assert.deepEqual(await readdir(folder), ["damaged"]);
  await journal.close();

  // The next start mentions the file, and does not read it.
  assert.equal((await stat(join(folder, "damaged"))).mode & 0o777, 0o600);
  const next = await openJournal(folder, QUIET, isNumbered);
  assert.deepEqual(await readdir(folder), ["damaged"]);
  assert.deepEqual(next.pending(), []);
  assert.deepEqual(next.setAside(), { damaged: damaged.length, refused: 0 });
  await next.close();
});

test("sets a damaged line aside once, however often a service starts before its entries are settled", async (t) => {
  for (const intact of [[], [2]]) {
    const folder = await makeFolder(t);
    const { path, lines } = await leftFile(folder, 1, ...intact);
    await writeFile(path, `${lines.join("\n").replace('"n":1', '"n":9')}\n{"cut off`);
    for (let start = 0; start < 3; start++) {
      const journal = await openJournal(folder, QUIET, isNumbered);
      assert.deepEqual(journal.pending(), intact.map(entry));
      assert.equal(journal.setAside().damaged, 1);
      await journal.close();
    }
    assert.equal((await readdir(folder)).length, 1 + intact.length);
    for (const name of await readdir(folder)) assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600);
  }
});

test("a line whose row has the wrong shape is set aside", async (t) => {
  const folder = await makeFolder(t);
  const journal = await openJournal(folder, QUIET);
  await journal.append([{ workspaceId: "ws_1", row: { n: "no number" } }, entry(1)]);
  await journal.close();
  const next = await openJournal(folder, QUIET, isNumbered);
  assert.deepEqual(next.pending(), [entry(1)]);
  assert.equal(next.setAside().damaged, 1);
  await next.close();
});

test("starts without a file that cannot be read, names it and leaves it where it is", async (t) => {
  const folder = await makeFolder(t);
  await mkdir(join(folder, "folder.jsonl"));
  await leftFile(folder, 1);
  const records: { file: string; cause: { code: string } }[] = [];
  const log = pino({ level: "error" }, { write: (line) => void records.push(JSON.parse(line)) });
  const journal = await openJournal(folder, log, isNumbered);
  assert.deepEqual(journal.pending(), [entry(1)]);
  assert.deepEqual(
    records.map(({ file, cause }) => [file, cause.code]),
    [[join(folder, "folder.jsonl"), "EISDIR"]],
  );
  assert.ok((await readdir(folder)).includes("folder.jsonl"));
  await journal.close();
});

test("sets lines aside that are intact and have no workspace or no row", async (t) => {
  const folder = await makeFolder(t);
  const wrong = [{}, { row: { n: 1 } }, { workspaceId: 7, row: { n: 1 } }, { workspaceId: "ws_1" }];
  const rows = [null, "n", 7].map((row) => ({ workspaceId: "ws_1", row }));
  const lines = [...wrong, ...rows, entry(5)].map((one) => {
    const json = JSON.stringify(one);
    return `${crc32(json).toString(16).padStart(8, "0")} ${json}\n`;
  });
  await writeFile(join(folder, "left.jsonl"), lines.join(""));
  const journal = await openJournal(folder, QUIET);
  assert.deepEqual([journal.pending(), journal.setAside().damaged], [[entry(5)], wrong.length + rows.length]);
  await journal.close();
});

test("takes over a file with as many entries as an outage of an hour leaves", async (t) => {
  const folder = await makeFolder(t);
  const numbers = Array.from({ length: 200_000 }, (_, i) => i);
  const journal = await openJournal(folder, QUIET);
  await journal.append(numbers.map(entry));
  await journal.close();
  const next = await openJournal(folder, QUIET, isNumbered);
  assert.equal(next.pending().length, numbers.length);
  await next.close();
});

test("says at the start how many settlements are set aside, and nothing if none is", async (t) => {
  const folder = await makeFolder(t);
  const records: { damaged: number; refused: number }[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void records.push(JSON.parse(line)) });
  for (const [damaged, refused] of [
    ["", ""],
    ["a\n", ""],
    ["", "b\nc\n"],
    ["a\n", "b\n"],
  ] as const) {
    await writeFile(join(folder, "damaged"), damaged);
    await writeFile(join(folder, "refused"), refused);
    const journal = await openJournal(folder, log);
    assert.deepEqual(journal.setAside(), { damaged: damaged.length / 2, refused: refused.length / 2 });
    await journal.refuse(entry(1));
    assert.equal(journal.setAside().refused, refused.length / 2 + 1);
    await journal.close();
  }
  assert.deepEqual(
    records.map(({ damaged, refused }) => [damaged, refused]),
    [
      [1, 0],
      [0, 2],
      [1, 1],
    ],
  );
});

test("counts what other processes set aside, and nothing once an operator has deleted the files", async (t) => {
  const folder = await makeFolder(t);
  await writeFile(join(folder, "damaged"), "a\nb\n");
  const journal = await openJournal(folder, QUIET);
  const other = await openJournal(folder, QUIET);
  t.onTestFinished(async () => {
    await Promise.all([journal.close(), other.close()]);
  });
  await other.refuse(entry(1));
  await until(() => isDeepStrictEqual(journal.setAside(), { damaged: 2, refused: 1 }));
  await appendFile(join(folder, "damaged"), "c\nd\n");
  await until(() => journal.setAside().damaged === 4);
  await writeFile(join(folder, "damaged"), "c\n");
  await until(() => journal.setAside().damaged === 1);
  for (const name of ["damaged", "refused"]) await rm(join(folder, name));
  for (const each of [journal, other])
    await until(() => isDeepStrictEqual(each.setAside(), { damaged: 0, refused: 0 }));
});

test("logs nothing when several processes start at the same time and one takes each file", async (t) => {
  const folder = await makeFolder(t);
  const records: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void records.push(line) });
  await Promise.all([1, 2, 3].map((n) => leftFile(folder, n)));
  for (let round = 0; round < 10; round++) {
    const journals = await Promise.all(Array.from({ length: 4 }, () => openJournal(folder, log, isNumbered)));
    for (const journal of journals) await journal.close();
  }
  assert.deepEqual(records, []);
});
