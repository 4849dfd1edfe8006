import assert from "node:assert/strict";
import { mkdir, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { test } from "vitest";
import { journalFolder } from "../../src/admission/journal.ts";
import { makeFolder } from "../helpers/books.ts";

/** @returns the folder, and the records of the log */
async function folderIn(dataDir: string) {
  const records: { folder: string; temporary: string }[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void records.push(JSON.parse(line)) });
  return { ...(await journalFolder(dataDir, log)), records };
}

test("makes the folder of the journal under DATA_DIR, and leaves nothing else in it", async (t) => {
  const dataDir = join(await makeFolder(t), "not", "there", "yet");
  for (let i = 0; i < 2; i++) {
    const { folder, discard, records } = await folderIn(dataDir);
    assert.deepEqual([folder, records], [join(dataDir, "journal"), []]);
    await discard();
    assert.deepEqual([await readdir(dataDir), await readdir(folder)], [["journal"], []]);
  }
});

for (const [what, make] of [
  ["no folder can be made", (dataDir: string) => writeFile(dataDir, "")],
  [
    "no file can be written",
    (dataDir: string) => mkdir(dataDir).then(() => symlink("/proc", join(dataDir, "journal"))),
  ],
] as const) {
  test(`makes a temporary folder where ${what}, and says so`, async (t) => {
    const dataDir = join(await makeFolder(t), "data");
    await make(dataDir);
    const { folder, discard, records } = await folderIn(dataDir);
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
    assert.equal(dirname(folder), tmpdir());
    assert.match(folder, /chorus-journal-[^/]+$/);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    assert.deepEqual(
      records.map(({ temporary }) => temporary),
      [folder],
    );
    await writeFile(join(folder, "entries.jsonl"), "");
    await discard();
    assert.deepEqual(await readdir(folder), ["entries.jsonl"]);
    await rm(join(folder, "entries.jsonl"));
    await discard();
    await assert.rejects(stat(folder), { code: "ENOENT" });
  });
}
