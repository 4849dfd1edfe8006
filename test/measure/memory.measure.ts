import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { deflateRawSync } from "node:zlib";
import type { Failure } from "../../src/contract/failure.ts";
import { createReader } from "../../src/engine/attachments/reader.ts";
import { bomb, DOCX_HEAD, pdf, png, zipOf } from "../engine/attachments/files.ts";
import { test as base } from "../helpers/fixtures.ts";
import { FROM_SOURCES } from "../helpers/program.ts";
import { head, openRaw } from "../helpers/raw.ts";
import type { TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

/** As users start the service. */
const test = base.extend("env", { scope: "file" }, FROM_SOURCES as Record<string, string>);

const MB = 1024 * 1024;
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const PDF = "application/pdf";
const NEVER = new AbortController().signal;

test("archives that unpack to a gigabyte are refused before they fill the memory", async ({
  annotate,
  onTestFinished,
}) => {
  const reader = createReader();
  onTestFinished(() => reader.close());
  const read = (mediaType: string, data: Uint8Array) =>
    reader.read(
      [{ name: "file", mediaType, data }],
      { question: "", tokens: 10_000, promptField: "prompt", owner: "ws_1" },
      NEVER,
    );
  const refused = (mediaType: string, data: Uint8Array, message: RegExp) =>
    assert.rejects(read(mediaType, data), { kind: "invalid_request", field: "attachments[0].data", message });
  const before = process.memoryUsage.rss();
  let peak = 0;
  const sampling = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss() - before);
  }, 10);
  const honest = { name: "word/document.xml", packed: bomb(1024, "raw"), size: 1024 ** 3 };
  const head = Object.entries(DOCX_HEAD).map(([name, text]) => {
    const bytes = Buffer.from(text);
    return { name, packed: deflateRawSync(bytes), size: bytes.length };
  });
  try {
    await refused(DOCX, zipOf([...head, honest]), /unpacks to more than 16 MB/);
    await refused(DOCX, zipOf([...head, { ...honest, size: 1000 }]), /damaged Word/);
    // Beside busy processes, the thread may not get the processor for a minute, and the file is refused for that.
    await assert.rejects(read(PDF, pdf([], { contents: [bomb(1024, "zlib")] })), (error: Failure) => {
      assert.match(`${error.kind}: ${error.message}`, /^invalid_request: .*(too much memory|too long)|^overloaded: /);
      return true;
    });
  } finally {
    clearInterval(sampling);
  }
  assert.ok(peak < 800 * 1024 * 1024, `${peak} bytes more`);
  await annotate(`${Math.round(peak / MB)} MB more at most`);
  assert.equal((await read(PDF, pdf(["fine"]))).texts[0]?.text, "fine");
});

test("twenty bodies of 60 MB at once: other requests are answered, and memory is bounded", async ({
  annotate,
  signal,
  service,
  vendor,
  t,
}) => {
  const post = { "X-API-Key": service.apiKey, "Content-Type": "application/json" };
  const released = Promise.withResolvers<void>();
  vendor.always(async ({ body }) => {
    if (body.includes("large")) await released.promise;
    return {};
  });
  const [start, end] = ['{"prompt":"large","attachments":[{"media_type":"image/png","data":"', '"}]}'];
  // As large an image as models take; the rest is held as well, for as long as the answer takes.
  const image = Buffer.concat([png(1, 1), Buffer.alloc(14 * MB)]);
  const body = Buffer.from(`${start}${image.toString("base64")}${end}${" ".repeat(41 * MB)}`);
  const before = memory(service);
  const answers = Array.from({ length: 20 }, async () => {
    const raw = await openRaw(t, service.url);
    raw.send(head("POST", "/v1/generate", { ...post, "Content-Length": body.length }));
    raw.send(body);
    return raw.read();
  });
  let done = false;
  const latencies: number[] = [];
  const small = (async () => {
    while (!done && !signal.aborted) {
      const at = performance.now();
      const response = await service.post("/v1/generate", { prompt: "small" });
      assert.equal(response.status, 200);
      await response.text();
      latencies.push(performance.now() - at);
      await sleep(5);
    }
  })();
  const large = () => vendor.calls.filter(({ body }) => body.includes("large")).length;
  let refused = 0;
  for (const answer of answers) {
    answer.then(({ status }) => {
      if (status === 503) refused++;
    });
  }
  // The two that fit into a workspace's share wait for their vendor; the others are refused meanwhile.
  await Promise.race([small, until(() => large() === 2 && refused === 18 && latencies.length >= 5)]);
  released.resolve();
  const all = await Promise.all(answers);
  done = true;
  await small;
  assert.deepEqual(all.map(({ status }) => status).toSorted(), [200, 200, ...Array(18).fill(503)]);
  for (const { status, headers, body } of all) {
    if (status !== 503) continue;
    assert.equal(headers["retry-after"], "1");
    const { code, retry_after_ms } = JSON.parse(body);
    assert.deepEqual({ code, retry_after_ms }, { code: "overloaded", retry_after_ms: 1000 });
  }
  const after = memory(service);
  await annotate(`RSS ${before.rss} MB before, ${after.peak} MB at most, ${after.rss} MB after`);
  await annotate(
    `${latencies.length} small requests meanwhile, the slowest took ${Math.round(Math.max(...latencies))} ms`,
  );
  // On an idle machine it is 0.3 s; test machines are shared.
  assert.ok(Math.max(...latencies) < 10_000);
  assert.ok(after.peak < 1_200, `${after.peak} MB`);
  vendor.always({});

  // All room is free again.
  const raw = await openRaw(t, service.url);
  raw.send(head("POST", "/v1/generate", { ...post, "Content-Length": body.length }));
  raw.send(body);
  assert.equal((await raw.read()).status, 200);
});

/** Resident memory of the service in MB, now and at its highest. Linux only; elsewhere zeros. */
function memory(service: TestService): { rss: number; peak: number } {
  if (process.platform !== "linux") return { rss: 0, peak: 0 };
  const text = readFileSync(`/proc/${service.process.pid}/status`, "utf8");
  const read = (name: string) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1]) / 1024);
  return { rss: read("VmRSS"), peak: read("VmHWM") };
}
