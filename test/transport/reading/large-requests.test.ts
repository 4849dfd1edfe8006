import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { GenerationService, Role } from "../../../gen/chorus/v1/generation_pb.js";
import { test as base } from "../../helpers/fixtures.ts";
import { OWN_PROCESS } from "../../helpers/program.ts";
import { rpcFailure, TRANSPORTS, transports } from "../../helpers/rpc.ts";
import { readEvents, startOwnService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";

const test = base.extend("env", { scope: "file" }, OWN_PROCESS);

/** Makes a body too large to be read on the event loop. */
const LONG = "The invoice was paid, 東京 and all. ".repeat(2_000);
const headersOf = (apiKey: string) => ({ "x-api-key": apiKey });

describe("a large body over REST", () => {
  test("gets the same answer, notices and tokens as a small one", async ({ service, vendor }) => {
    const messages = [{ role: "user", content: "What is it?" }];
    const ask = async (body: object) => {
      const response = await service.post("/v1/generate", body);
      return { status: response.status, ...JSON.parse(await response.text()) };
    };
    const small = await ask({ messages, more: "" });
    const large = await ask({ messages, more: LONG });
    assert.deepEqual([large.status, large.notices], [200, small.notices]);
    assert.equal(large.usage.input_tokens, small.usage.input_tokens);
    assert.deepEqual(vendor.calls[1]?.json, vendor.calls[0]?.json);
  });

  test("brings its text and files to the model", async ({ service, vendor }) => {
    const data = Buffer.from(LONG).toString("base64");
    const attachments = [{ name: "f.txt", media_type: "text/plain", data }];
    const response = await service.post("/v1/generate", { prompt: LONG.trim(), attachments });
    assert.equal(response.status, 200, await response.text());
    assert.equal(vendor.calls[0]?.body.split(LONG.trim()).length, 3);
  });

  test("is streamed", async ({ service }) => {
    const response = await service.post("/v1/generate:stream", { messages: [{ role: "user", content: LONG }] });
    assert.equal((await readEvents(response)).at(-1)?.event, "done");
  });

  test("is refused with the field, as a small one is", async ({ service }) => {
    const user = { role: "user", content: LONG };
    const json = JSON.stringify({ prompt: LONG });
    const cases: Array<[body: unknown, status: number, code: string, field: string | undefined]> = [
      [{ messages: [user, { role: "nobody", content: "" }] }, 422, "invalid_request", "messages[1].role"],
      [{ prompt: LONG.repeat(4) }, 422, "invalid_request", "prompt"],
      [{ messages: [{ role: "user", content: LONG.repeat(60) }] }, 422, "request_too_long", "messages"],
      [json.slice(0, -1), 400, "invalid_json", undefined],
      [`[${json}]`, 400, "invalid_json", undefined],
    ];
    for (const [body, status, code, field] of cases) {
      const response = await service.post("/v1/generate", body);
      const failure = JSON.parse(await response.text());
      assert.deepEqual([response.status, failure.code, failure.field], [status, code, field], failure.message);
    }
  });

  test("may have 4,000,000 characters, each of which can take two units of UTF-16", async ({ service }) => {
    const count = (content: string) =>
      service.post("/v1/messages/count_tokens", { model: "chorus", messages: [{ role: "user", content }] });
    const most = "\u{1F600} ".repeat(2_000_000);
    assert.equal((await count(most)).status, 200);
    assert.equal((await count(`${most}.`)).status, 400);
  });

  test("is answered once for one idempotency key", async ({ service, vendor }) => {
    const ask = async (content: string) => {
      const body = { messages: [{ role: "user", content }] };
      const response = await service.post("/v1/generate", body, { "idempotency-key": "large-1" });
      return JSON.parse(await response.text());
    };
    const first = await ask(LONG);
    const calls = vendor.calls.length;
    assert.equal((await ask(LONG)).id, first.id);
    assert.equal((await ask(`${LONG}?`)).code, "idempotency_key_reused");
    assert.equal(vendor.calls.length, calls);
  });
});

/** Bodies that threads for light, medium and heavy jobs read. */
const WEIGHTS = [LONG.slice(0, 30_000), LONG, LONG.repeat(20)].map((prompt) => ({ prompt }));

test("a large body does not wait for larger ones that came before", async ({ service }) => {
  const [light] = WEIGHTS;
  for (const body of WEIGHTS) await (await service.post("/v1/generate", body)).text();
  // Texts without a space take longest to count.
  const medium = { messages: Array.from({ length: 2 }, () => ({ role: "user", content: "ab".repeat(100_000) })) };
  const ended: string[] = [];
  const send = async (name: string, body: object) => {
    await (await service.post("/v1/generate", body)).text();
    ended.push(name);
  };
  const sent = ["first", "second", "third"].map((name) => send(name, medium));
  await Promise.all([...sent, send("light", light ?? {})]);
  assert.equal(ended[0], "light");
});

/** Reads how far the priorities of the threads with a name are below that of the event loop. Linux only. */
function nicenessOf(pid: number, name: string): number[] {
  const threads = readdirSync(`/proc/${pid}/task`).map((id) => {
    const [, own = "", fields = ""] = /\((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/task/${id}/stat`, "utf8")) ?? [];
    return { id: Number(id), name: own, niceness: Number(fields.split(" ")[16]) };
  });
  const loop = threads.find(({ id }) => id === pid)?.niceness ?? 0;
  return threads.filter((one) => one.name === name).map(({ niceness }) => niceness - loop);
}

describe.runIf(process.platform === "linux")("the threads that read large bodies", () => {
  test("have the lower a priority, the larger the bodies", async ({ service }) => {
    for (const body of WEIGHTS) await (await service.post("/v1/generate", body)).text();
    const { pid = 0 } = service.process;
    const own = getPriority(pid);
    const below = [5, 10, 15].map((niceness) => Math.min(19, own + niceness) - own);
    assert.deepEqual(new Set(nicenessOf(pid, "WorkerThread")), new Set(below));
    const engine = nicenessOf(pid, "V8Worker");
    assert.ok(engine.length > 0 && engine.every((niceness) => niceness === 12));
  });

  test("start with the service, except those for the largest", async ({ onTestFinished }) => {
    const service = await startOwnService({ onTestFinished }, { env: { CHORUS_WARM_UP: "on" } });
    const { pid = 0 } = service.process;
    await until(() => nicenessOf(pid, "WorkerThread").filter((niceness) => niceness > 0).length === 2);
    const [light, medium] = WEIGHTS;
    for (const body of [light, medium]) assert.equal((await service.post("/v1/generate", body ?? {})).status, 200);
    assert.equal(nicenessOf(pid, "WorkerThread").length, 2);
    assert.equal(await service.stop(), 0);
  });
});

describe("a large body over RPC", () => {
  for (const name of TRANSPORTS) {
    test(`is answered and refused over ${name}`, async ({ service, vendor }) => {
      const client = createClient(GenerationService, transports(service.rpcUrl)[name]);
      const options = { headers: headersOf(service.apiKey) };
      const request = { messages: [{ role: Role.USER, content: LONG }] };
      const { usage } = await client.generate(request, options);
      assert.ok(usage && usage.inputTokens > 10_000);
      assert.ok(vendor.calls[0]?.body.includes(LONG));
      const cases: string[] = [];
      for await (const { event } of client.streamGenerate(request, options)) cases.push(event.case ?? "");
      assert.equal(cases.at(-1), "done");
      const failure = await rpcFailure(client.generate({ ...request, maxTokens: -1 }, options));
      assert.deepEqual([failure.code, failure.detail?.field], ["InvalidArgument", "max_tokens"]);
    });
  }

  test("is refused when it is no message", async ({ service }) => {
    for (const [type, body] of [
      ["application/json", `{"prompt":"${LONG}"`],
      ["application/proto", Buffer.alloc(20_000, 0xff)],
      ["application/grpc-web+proto", Buffer.alloc(20_000, 0x02)],
    ] as const) {
      const response = await fetch(`${service.rpcUrl}/chorus.v1.GenerationService/Generate`, {
        method: "POST",
        headers: { ...headersOf(service.apiKey), "content-type": type },
        body,
      });
      const failure = `${response.headers.get("grpc-status")} ${await response.text()}`;
      assert.match(failure, /invalid_argument|grpc-status: 3|^3 /, type);
    }
  });
});
