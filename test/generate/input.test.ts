import assert from "node:assert/strict";
import { describe } from "vitest";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import { png } from "../engine/attachments/files.ts";
import { credits, rowOf } from "../helpers/bench.ts";
import { test as base } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { NAMES, startPanel } from "../helpers/panel.ts";
import { FOUND, startSearchServer } from "../helpers/search-servers.ts";
import type { VendorCall } from "../helpers/vendors.ts";

const file = (name: string, media_type: string, data: string | Uint8Array) => ({
  name,
  media_type,
  data: Buffer.from(data).toString("base64"),
});

/** The text of all user messages that the model received. */
function userText(call: VendorCall | undefined): string {
  const { messages } = (call?.json ?? {}) as { messages: { role: string; content: unknown }[] };
  const content = messages.findLast(({ role }) => role === "user")?.content;
  return typeof content === "string" ? content : JSON.stringify(content);
}

const test = base.extend(
  "shared",
  { scope: "file" },
  fixture(async (t) => {
    const search = await startSearchServer("searxng");
    t.onTestFinished(() => search.close());
    const { vendors, pool, service, start, script, calls, ask, stream } = await startPanel(t, search.env, {
      anthropic: { images: true },
      openai: { context_tokens: 4_000 },
      google: { context_tokens: 4_000 },
    });
    const tokenizer = createTokenizer();
    const count = (text: string) => tokenizer.count(text);
    const codes = (notices: { code: string }[]) => notices.map(({ code }) => code);
    return { search, count, codes, vendors, pool, service, start, script, calls, ask, stream };
  }),
);

describe("reads the input of a request", () => {
  test("sends text files before the question, as data, and counts them as input", async ({
    shared: { count, vendors, pool, script, ask, stream },
  }) => {
    script({});
    const texts = ["The code word is swordfish.", "a,b\n1,2\n"];
    const attachments = [file("note.txt", "text/plain", texts[0] ?? ""), file("t.csv", "text/csv", texts[1] ?? "")];
    const body = { prompt: "What is the code word?", effort: "low", attachments, intelligence_trace: true };
    const answer = await ask(body);
    assert.deepEqual(answer.notices, []);
    const input = count(body.prompt) + count(texts[0] ?? "") + count(texts[1] ?? "");
    const { input_tokens, output_tokens, cached_tokens, credits: paid } = answer.usage;
    assert.equal(input_tokens, input);
    assert.equal(paid, credits(input, cached_tokens, output_tokens));
    assert.match(
      userText(vendors.openai.calls[0]),
      /note\.txt.*begins ---\nThe code word is swordfish\.\n--- .*t\.csv.*a,b\n1,2.*What is the code word\?$/s,
    );
    assert.deepEqual(answer.intelligence_trace.steps[0].kind, "attachments");
    const events = await stream(body);
    const step = events.find(({ event }) => event === "trace")?.data.step as { kind: string } | undefined;
    assert.equal(step?.kind, "attachments");
    // No text of a file is stored.
    const dump = JSON.stringify(await rowOf(pool, answer.id), (_, value) => (typeof value === "bigint" ? 0 : value));
    assert.doesNotMatch(dump, /swordfish|note/);
  });

  test("sends an image to models that accept images, and counts it by its dimensions", async ({
    shared: { count, vendors, script, calls, ask },
  }) => {
    script({});
    const data = png(300, 200);
    const body = { prompt: "What is this?", effort: "high", attachments: [file("a.png", "image/png", data)] };
    const answer = await ask(body);
    assert.equal(answer.usage.input_tokens, count(body.prompt) + 80);
    assert.ok(vendors.anthropic.calls.length > 0);
    assert.equal(calls().length, vendors.anthropic.calls.length);
    assert.ok(vendors.anthropic.calls[0]?.body.includes(Buffer.from(data).toString("base64")));
  });

  test("sends an image only to models that accept images also when an answer is not valid", async ({
    shared: { vendors, service, script, calls },
  }) => {
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const attachments = [file("a.png", "image/png", png(300, 200))];
    const answer = { text: '{"city":"Oslo"}', calls: [{ name: "note", arguments: '{"city":"Oslo"}' }] };
    for (const [effort, demand] of [
      ["low", { response_format: { type: "json_schema", schema: { ...parameters, additionalProperties: false } } }],
      ["low", { tools: [{ name: "note", parameters }], tool_choice: "required" }],
      ["medium", { tools: [{ name: "note", parameters }], tool_choice: "required" }],
    ] as const) {
      script({ openai: { draft: answer }, google: { draft: answer }, anthropic: { draft: { text: "A town." } } });
      const response = await service.post("/v1/generate", { prompt: "Which city?", effort, attachments, ...demand });
      const { code } = (await response.json()) as { code?: string };
      assert.deepEqual([response.status, code], [502, "structured_output_failed"]);
      assert.ok(vendors.anthropic.calls.length > 1);
      assert.equal(calls().length, vendors.anthropic.calls.length);
    }
  });

  test("shortens files that exceed the context of the models, and counts the rest", async ({
    shared: { codes, script, calls, ask },
  }) => {
    script({});
    const filler = Array.from({ length: 25_000 }, (_, i) => `Sentence ${i} says little.`);
    filler[12_500] = "The heron nests at Tarn Hows.";
    const attachments = [file("long.txt", "text/plain", filler.join(" "))];
    const answer = await ask({ prompt: "Where does the heron nest?", effort: "low", attachments });
    assert.deepEqual(codes(answer.notices), ["attachments_shortened"]);
    assert.ok(answer.usage.input_tokens > 10_000 && answer.usage.input_tokens < 128_000, answer.usage.input_tokens);
    assert.match(
      calls()
        .map(({ body }) => body)
        .join(),
      /Tarn Hows/,
    );
  });

  test("refuses an unreadable file before any call", async ({ shared: { pool, service, script, calls } }) => {
    script({});
    const [before] = await pool.query<{ n: bigint }>("select count(*) as n from generations");
    for (const [attachment, field] of [
      [file("a.png", "image/png", "no image"), "attachments[0].media_type"],
      [file("a.pdf", "application/pdf", png(1, 1)), "attachments[0].media_type"],
      [file("a.zip", "application/zip", "PK"), "attachments[0].media_type"],
      [file("a.png", "image/png", Buffer.concat([png(1, 1), Buffer.alloc(15_000_000)])), "attachments[0].data"],
    ] as const) {
      const response = await service.post("/v1/generate", { prompt: "a", attachments: [attachment] });
      const body = (await response.json()) as Record<string, unknown>;
      assert.deepEqual([response.status, body.code, body.field], [422, "invalid_request", field]);
    }
    assert.equal(calls().length, 0);
    const [after] = await pool.query<{ n: bigint }>("select count(*) as n from generations");
    assert.equal(after?.n, before?.n);
  });

  test("sends search results as data to cite, lists them and does not charge for them", async ({
    shared: { search, count, codes, vendors, script, ask },
  }) => {
    script({});
    const body = { prompt: "Which apples are there?", effort: "low", web_search: true, intelligence_trace: true };
    const answer = await ask(body);
    assert.equal(search.calls.at(-1)?.query, body.prompt);
    assert.equal(answer.usage.input_tokens, count(body.prompt));
    assert.deepEqual(codes(answer.notices), ["web_search_sources"]);
    for (const { url = "" } of FOUND) assert.ok(answer.notices[0].message.includes(url));
    assert.match(
      userText(vendors.openai.calls[0]),
      /begins ---\n\[1\] First page.*ends ---\n\nWhich apples are there\?$/s,
    );
    assert.equal(answer.intelligence_trace.searches, 1);
    assert.deepEqual(
      answer.intelligence_trace.steps.map(({ kind, role, outcome }: Record<string, string>) => [kind, role, outcome]),
      [
        ["search", "service", "ok"],
        ["answer", "fast", "ok"],
      ],
    );
    assert.doesNotMatch(JSON.stringify(answer), NAMES);
  });

  test("answers without sources when the search fails", async ({ shared: { search, codes, vendors, script, ask } }) => {
    script({});
    search.always({ status: 403 });
    const answer = await ask({ prompt: "Which apples are there?", effort: "low", web_search: true });
    assert.deepEqual(codes(answer.notices), ["web_search_failed"]);
    assert.doesNotMatch(userText(vendors.openai.calls[0]), /begins ---/);
    search.always({});
  });

  test("refuses an image without a model for it, and adds a notice without a search", async ({
    shared: { codes, start, ask },
    t,
  }) => {
    const textOnly = await start({
      CHORUS_MODELS: "",
      SEARXNG_BASE_URL: "",
    });
    t.onTestFinished(async () => {
      await textOnly.stop();
    });
    for (const type of ["image/png", " IMAGE/png ;a=b"]) {
      const response = await textOnly.post("/v1/generate", {
        prompt: "a",
        attachments: [file("n", "text/plain", "hi"), file("a.png", type, png(1, 1))],
      });
      const body = (await response.json()) as Record<string, unknown>;
      assert.deepEqual([response.status, body.code, body.field], [422, "invalid_request", "attachments[1].media_type"]);
    }
    const prompt = "Where does the heron nest?";
    const attachments = [file("n.txt", "text/plain", "The heron nests at Tarn Hows. The owl lives in the barn.")];
    const answer = await ask({ prompt, attachments, web_search: true }, textOnly);
    // The offline model reads the file without the marks around it.
    assert.match(answer.answer, /Tarn Hows/);
    assert.doesNotMatch(answer.answer, /begins ---|data that belongs/);
    assert.deepEqual(codes(answer.notices), ["offline_models", "web_search_unavailable"]);
  });
});
