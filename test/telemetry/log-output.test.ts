import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

interface Line {
  level: number;
  i?: number;
  lines?: number;
  msg: string;
}

/** A process whose log nobody reads before `read` is called. */
interface Unread {
  child: ChildProcess;
  /** Reads the log to its end. */
  read(): Promise<Line[]>;
}

const LOG = resolve(import.meta.dirname, "../../src/telemetry/log.ts");

/** Starts a script that has the log of a process on `stderr`. */
function run(t: Lifetime, script: string, stderr: "pipe" | number): ChildProcess {
  const start = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    import { setTimeout as sleep } from "node:timers/promises";
    const { writeSync } = fs;
    let writes = 0;
    fs.writeSync = (fd, bytes) => {
      if (fd === 2) writes += 1;
      return writeSync(fd, bytes);
    };
    syncBuiltinESMExports();
    const { openLog } = await import(${JSON.stringify(LOG)});
    const { log, errors, output } = openLog("info", process.stderr);
    let longest = 2_000;
    process.on("exit", () => output.flush(longest));
    const tell = (value) => writeSync(1, JSON.stringify(value));
    const write = (lines) => {
      for (let i = 0; i < lines; i++) log.info({ i, filler: "x".repeat(400) }, "line");
    };
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", start + script], {
    env: CHILD_ENV,
    stdio: ["ignore", "pipe", stderr],
  });
  const exited = once(child, "exit");
  t.onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return child;
}

async function readLines(stream: Readable, onData = () => {}): Promise<Line[]> {
  let output = "";
  stream.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    onData();
  });
  await once(stream, "end");
  assert.ok(output.endsWith("\n"));
  return output
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function onPipe(t: Lifetime, script: string): Promise<Unread> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-log-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "pipe");
  await promisify(execFile)("mkfifo", [path]);
  // Keeps the pipe open until it has a reader.
  let holder: number | undefined = openSync(path, constants.O_RDWR);
  const release = () => {
    if (holder !== undefined) closeSync(holder);
    holder = undefined;
  };
  t.onTestFinished(release);
  const writer = openSync(path, constants.O_WRONLY);
  const child = run(t, script, writer);
  closeSync(writer);
  return {
    child,
    read: () => readLines(spawn("cat", [path], { stdio: ["ignore", "pipe", "inherit"] }).stdout, release),
  };
}

/** Node connects its child processes by sockets. */
async function onSocket(t: Lifetime, script: string): Promise<Unread> {
  const child = run(t, script, "pipe");
  return { child, read: () => readLines(child.stderr as Readable) };
}

/** The first value that the script tells. */
async function told<T>(child: ChildProcess): Promise<T> {
  const [text] = await once(child.stdout as Readable, "data");
  return JSON.parse(String(text));
}

const range = (length: number) => Array.from({ length }, (_, i) => i);

for (const [kind, start] of [
  ["pipe", onPipe],
  ["socket", onSocket],
] as const) {
  test(`a ${kind} gets lines in batches`, async (t) => {
    const { child, read } = await start(
      t,
      `for (let turn = 0; turn < 10; turn++) {
        write(50);
        await new Promise(setImmediate);
      }
      await sleep(50);
      tell({ writes });`,
    );
    const [{ writes }, lines] = await Promise.all([told<{ writes: number }>(child), read()]);
    assert.equal(lines.length, 500);
    assert.ok(writes >= 1 && writes <= 40, `${writes} writes`);
  });

  test(`a ${kind} that nobody reads delays nothing; the log says how many lines were dropped`, async (t) => {
    const { child, read } = await start(
      t,
      `write(30_000);
      await sleep(100);
      tell({ dropped: output.dropped, errors: errors.counts.log });
      await sleep(1_000);
      log.info("after");`,
    );
    const { dropped, errors } = await told<{ dropped: number; errors: number }>(child);
    assert.ok(dropped > 10_000 && dropped < 25_000, `${dropped} dropped`);
    assert.equal(errors, 0);
    const lines = await read();
    const kept = lines.flatMap(({ i }) => (i === undefined ? [] : [i]));
    assert.deepEqual(kept, range(30_000 - dropped));
    assert.deepEqual(
      lines.slice(kept.length).map(({ level, lines, msg }) => [level, lines, msg]),
      [
        [40, dropped, "log lines were dropped, because the reader of the log was too slow"],
        [30, undefined, "after"],
      ],
    );
  });

  test(`a ${kind} that nobody reads does not keep the process from ending`, async (t) => {
    const { child } = await start(t, "write(30_000); tell(1); process.exit(3);");
    await told(child);
    const since = performance.now();
    assert.deepEqual(await once(child, "exit"), [3, null]);
    const ms = performance.now() - since;
    assert.ok(ms < 6_000, `${ms} ms`);
  });

  test(`a ${kind} gets all lines before the process ends, also those beyond the bound`, async (t) => {
    const { read } = await start(
      t,
      // The reader may be slow.
      `longest = 60_000;
      write(5_000);
      output.flush(longest);
      write(12_000);
      log.fatal("last");
      process.exit(1);`,
    );
    const lines = await read();
    assert.deepEqual(
      lines.slice(0, -1).map(({ i }) => i),
      [...range(5_000), ...range(12_000)],
    );
    assert.deepEqual([lines.at(-1)?.level, lines.at(-1)?.msg], [60, "last"]);
  });
}

test("a reader that has gone is one error, and the process goes on", async (t) => {
  const { child } = await onSocket(
    t,
    `await sleep(200);
    write(10);
    await sleep(300);
    write(10);
    await sleep(100);
    tell({ errors: errors.counts.log, dropped: output.dropped });
    process.exit(0);`,
  );
  child.stderr?.destroy();
  assert.deepEqual(await told(child), { errors: 1, dropped: 0 });
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("writes every line to a file once, also lines that are being written when the process ends", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-log-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "log");
  const file = openSync(path, "w");
  const child = run(
    t,
    // All lines fit into what may wait, however slow the disk is.
    `write(2_000);
    await sleep(20);
    write(2_000);
    process.exit(0);`,
    file,
  );
  closeSync(file);
  assert.deepEqual(await once(child, "exit"), [0, null]);
  const lines = (await readFile(path, "utf8")).slice(0, -1).split("\n");
  const numbers = lines.map((line) => (JSON.parse(line) as Line).i ?? 0).toSorted((a, b) => a - b);
  assert.deepEqual(
    numbers,
    range(2_000).flatMap((i) => [i, i]),
  );
});
