import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import { testDatabase } from "../helpers/database.ts";
import { test as base } from "../helpers/fixtures.ts";
import { fixture, type Lifetime } from "../helpers/lifetime.ts";
import { readEvents, startService, type TestService } from "../helpers/service.ts";
import { type Reply, type ScriptedVendor, startVendor, type VendorKind } from "../helpers/vendors.ts";

const KINDS: VendorKind[] = ["openai", "anthropic", "google"];

/** Names like integers out of order, a name with a meaning in JavaScript, and numbers that no double can hold. */
const SCHEMA =
  '{"type":"object","properties":{"10":{"type":"integer","enum":[123456789012345678901234567890,1]},' +
  '"9":{"type":"number"},' +
  '"__proto__":{"type":"string"},"a":{"type":"array","items":{"type":"string"}}},' +
  '"required":["10","9","__proto__","a"],"additionalProperties":false}';
const VALID = '{"10":123456789012345678901234567890,"9":1.50,"__proto__":"x","a":["b"]}';

const test = base
  /** Starts the tiers of a vendor when a test first asks for them. */
  .extend(
    "tiersOf",
    { scope: "file" },
    fixture((t) => {
      const started = new Map<VendorKind, ReturnType<typeof startTiers>>();
      return async (kind: VendorKind) => {
        const tiers = started.get(kind) ?? startTiers(t, kind);
        started.set(kind, tiers);
        return tiers;
      };
    }),
  )
  .extend("kind", "openai" as VendorKind)
  .extend("tiers", async ({ tiersOf, kind }) => {
    const tiers = await tiersOf(kind);
    tiers.reset();
    return tiers;
  });

describe.for(KINDS)("a strict answer through the format of %s", (kind) => {
  test.override("kind", kind);

  test("keeps names, their order and every digit in both directions", async ({
    tiers: { fast, strong, ask, count },
  }) => {
    const response = await ask();
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.ok(text.includes(`"answer":${JSON.stringify(VALID)},"structured":${VALID},"structured_error":null,`), text);
    const { usage, finish_reason } = JSON.parse(text);
    assert.equal(usage.input_tokens, count("Fill it in.") + count(SCHEMA));
    assert.equal(usage.output_tokens, count(VALID));
    assert.equal(finish_reason, "stop");
    const { body } = fast.calls[0] ?? assert.fail("the vendor was not called");
    // Every strict mode accepts this schema, so it is sent unchanged.
    assert.ok(body.includes(SCHEMA), body);
    assert.equal(strong.calls.length, 0);
  });

  test("repairs syntax without another call", async ({ tiers: { fast, ask } }) => {
    const text = `Here you are:\n\`\`\`json\n${VALID.replace('["b"]}', "['b',],}")}\n\`\`\``;
    fast.always({ text });
    const answer = await (await ask()).text();
    assert.ok(answer.includes(`"structured":${VALID}`), answer);
    assert.equal(fast.calls.length, 1);
  });

  test("sends an invalid answer back once, with the validator's errors", async ({
    tiers: { fast, strong, ask, count },
  }) => {
    const invalid = VALID.replace('"x"', "7").replace('["b"]', '["b",null]');
    fast.reply({ text: invalid });
    const answer = await (await ask({ intelligence_trace: true })).text();
    assert.ok(answer.includes(`"structured":${VALID}`), answer);
    assert.equal(fast.calls.length, 2);
    assert.equal(strong.calls.length, 0);
    const again = fast.calls[1]?.body ?? "";
    assert.ok(again.includes(JSON.stringify(invalid).slice(1, -1)), "the model sees what it said");
    assert.match(again, /\$\.__proto__: must be string/);
    assert.match(again, /\$\.a\[1\]: must be string/);
    const { intelligence_trace, usage } = JSON.parse(answer);
    assert.deepEqual(
      intelligence_trace.steps.map(({ kind, role, outcome }: Record<string, unknown>) => [kind, role, outcome]),
      [
        ["answer", "fast", "failed"],
        ["reask", "fast", "ok"],
      ],
    );
    // Input and output count once, for any number of calls.
    assert.equal(usage.input_tokens, count("Fill it in.") + count(SCHEMA));
    assert.equal(usage.output_tokens, count(VALID));
  });

  test("says in the trace which tier has answered again after a failover", async ({ tiers: { fast, ask } }) => {
    fast.always(({ body }) => (body.includes("That is not valid") ? { status: 404 } : { text: "{}" }));
    const { intelligence_trace } = JSON.parse(await (await ask({ intelligence_trace: true })).text());
    assert.deepEqual(
      intelligence_trace.steps.map(({ kind, role, outcome }: Record<string, unknown>) => [kind, role, outcome]),
      [
        ["answer", "fast", "failed"],
        ["reask", "strong", "ok"],
      ],
    );
  });

  test("asks the other tier when one stays invalid", async ({ tiers: { reset, fast, strong, ask } }) => {
    fast.always({ text: '{"10":2}' });
    const answer = await (await ask()).text();
    assert.ok(answer.includes(`"structured":${VALID}`), answer);
    assert.deepEqual([fast.calls.length, strong.calls.length], [2, 1]);
    assert.doesNotMatch(strong.calls[0]?.body ?? "", /That is not valid/);
    reset();
    strong.always({ text: "no JSON" });
    assert.equal((await ask({ effort: "medium" })).status, 200);
    assert.deepEqual([fast.calls.length, strong.calls.length], [1, 2]);
    reset();
    strong.always({ text: "no JSON" });
    assert.equal((await ask({ effort: "high" })).status, 200);
    // With one vendor: three samples of its strongest model, one call of the judge, and one more try.
    assert.deepEqual([fast.calls.length, strong.calls.length], [1, 5]);
  });

  test("fails with 502 structured_output_failed, uncharged, when no answer is valid", async ({
    tiers: { reset, fast, strong, ask, refusal },
  }) => {
    for (const text of [
      "{}",
      "no JSON",
      VALID.slice(0, -1),
      `${VALID.slice(0, -1)},"more":1}`,
      VALID.replace("1.50", '"1.50"'),
      VALID.replace("890,", "891,"),
      "[]",
    ]) {
      fast.always({ text });
      strong.always({ text });
      assert.equal(await refusal(await ask(), 502), "structured_output_failed", text);
      assert.deepEqual([fast.calls.length, strong.calls.length], [2, 1]);
      reset();
    }
  });

  test("rejects an answer that was cut off, also when it is valid", async ({
    tiers: { reset, fast, strong, ask, refusal },
  }) => {
    for (const finish of ["length", "content-filter"]) {
      const cut: Reply = { text: VALID, finish };
      fast.always(cut);
      strong.always(cut);
      assert.equal(await refusal(await ask(), 502), "structured_output_failed", finish);
      assert.deepEqual([fast.calls.length, strong.calls.length], [1, 1]);
      reset();
      fast.always(cut);
      assert.equal((await ask()).status, 200);
      reset();
    }
  });

  test("applies max_tokens by the service's own count, and gives a model that may think more", async ({
    kind,
    tiers: { fast, ask, refusal, count },
  }) => {
    assert.equal((await ask({ max_tokens: count(VALID) })).status, 200);
    const [, sent] = /[tT]okens":(\d+)/.exec(fast.calls[0]?.body ?? "") ?? [];
    if (kind === "openai") assert.equal(Number(sent), count(VALID), "nothing says that this model thinks");
    else assert.ok(Number(sent) > count(VALID) + 1_000, sent);
    assert.equal(await refusal(await ask({ max_tokens: count(VALID) - 1 }), 502), "structured_output_failed");
  });

  test("asks the other tier when a vendor fails, and retries nothing when both fail", async ({
    kind,
    tiers: { reset, fast, strong, ask, refusal },
  }) => {
    fast.always({ status: 400 });
    assert.equal((await ask()).status, 200);
    reset();
    fast.always({ status: 400 });
    strong.always({ status: 400 });
    assert.equal(await refusal(await ask(), 502), "upstream_failed");
    // Once in each of the vendor's modes and once without, in case the vendor refused the mode.
    const calls = kind === "google" ? 2 : 3;
    assert.deepEqual([fast.calls.length, strong.calls.length], [calls, calls]);
  });

  test("removes no nulls: one that the schema does not allow makes the answer invalid", async ({
    tiers: { fast, ask },
  }) => {
    const schema =
      '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["string","null"]},' +
      '"c":{"type":["string","null"],"enum":["x",null]},"d":{"type":"null","const":null},' +
      '"list":{"type":"array","items":{"type":"object","properties":{"e":{"type":["number","null"]}}}}},' +
      '"required":["b"]}';
    const nulls = '{"b":null,"c":null,"d":null,"list":[{"e":null},{}],"z":null}';
    fast.always({ text: nulls });
    assert.ok((await (await ask({}, schema)).text()).includes(`"structured":${nulls}`));
    const asked = fast.calls.length;
    fast.always({});
    fast.reply({ text: '{"a":null,"b":null}' }, { text: '{"b":"two"}' });
    assert.ok((await (await ask({}, schema)).text()).includes('"structured":{"b":"two"}'));
    assert.equal(fast.calls.length - asked, 2, "the model is asked again");
    assert.match(fast.calls.at(-1)?.body ?? "", /\$\.a: must be string/);
  });

  test("fails when a stream ends without its terminal frame", async ({ tiers: { fast, strong, service } }) => {
    strong.always({ text: ["whole"] });
    for (const [after, events] of [
      [0, ["delta", "done"]],
      [1, ["delta", "error"]],
    ] as const) {
      fast.always({ text: ["one", " two"], after, end: "cut" });
      const got = await readEvents(await service.post("/v1/generate:stream", { prompt: "a" }));
      assert.deepEqual(
        got.map(({ event }) => event),
        events,
      );
      fast.always({ text: "well" });
      await service.post("/v1/generate", { prompt: "a" });
    }
  });

  test("gives the same answer for every split of a stream", async ({ tiers: { fast, service } }) => {
    const text = 'Grüße, 漢字! 👩‍👩‍👧 \u2028 é\r\n"quoted" \\ end';
    const sizes = [...Array.from({ length: 12 }, (_, i) => i + 1), 17, 64];
    fast.always(({ body }) => ({
      text: [text.slice(0, 9), text.slice(9, 14), text.slice(14)],
      split: Number(/#(\d+)/.exec(body)?.[1]),
    }));
    const answers = sizes.map(async (size) => {
      const events = await readEvents(await service.post("/v1/generate:stream", { prompt: `#${size}` }));
      assert.equal(events.at(-1)?.event, "done", `${size}`);
      return events.map(({ data }) => data.text ?? "").join("");
    });
    for (const answer of await Promise.all(answers)) assert.equal(answer, text);
  });

  test("replaces lone surrogates, which are no text in UTF-8, and joins the halves of a pair", async ({
    tiers: { fast, ask, service },
  }) => {
    const lone = "a\ude00 \ud83d";
    fast.always({ text: [`${lone}b\ud83d`, "\ude00 \ud83d"] });
    const events = await readEvents(await service.post("/v1/generate:stream", { prompt: "a" }));
    assert.equal(events.map(({ data }) => data.text ?? "").join(""), "a\ufffd \ufffdb😀 \ufffd");
    fast.always({ text: VALID.replace("x", lone) });
    const { answer, structured } = await (await ask()).json();
    assert.equal(answer, VALID.replace("x", lone.toWellFormed()));
    assert.equal(Object.getOwnPropertyDescriptor(structured, "__proto__")?.value, lone.toWellFormed());
    fast.always({ calls: [{ name: "note", arguments: JSON.stringify({ text: "@" }).replace("@", lone) }] });
    const tools = [{ name: "note", parameters: { type: "object" } }];
    const called = await (await service.post("/v1/generate", { prompt: "a", tools })).json();
    assert.deepEqual(called.tool_calls[0].arguments, { text: lone.toWellFormed() });
  });

  test("sends a conversation with messages of white space only, whose text Anthropic refuses", async ({
    tiers: { fast, strong, service },
  }) => {
    fast.always(({ body }) => (/:"(?: |\\[nt])+"/.test(body) ? { status: 400 } : { text: "Yes." }));
    const tool_calls = [{ id: "c1", name: "note", arguments: {} }];
    const messages = [
      { role: "assistant", content: " \n" },
      { role: "user", content: "a" },
      { role: "assistant", content: "\n\n", tool_calls },
      { role: "tool", content: "done", tool_call_id: "c1" },
    ];
    const tools = [{ name: "note", parameters: { type: "object" } }];
    for (const body of [{ messages, tools }, { prompt: "\t\n" }]) {
      const response = await service.post("/v1/generate", { ...body, effort: "low" });
      assert.equal(response.status, 200, await response.text());
    }
    assert.deepEqual([fast.calls.length, strong.calls.length], [2, 0]);
  });

  test("sends the caller's temperature; without one prose gets the vendor's own, and JSON 0 if it may", async ({
    kind,
    tiers: { fast, service },
  }) => {
    const sent = async (body: object) => {
      await service.post("/v1/generate", { prompt: "a", effort: "low", ...body });
      return Number(/"temperature":([\d.]+)/.exec(fast.calls.at(-1)?.body ?? "")?.[1]);
    };
    assert.equal(await sent({ temperature: 0.7 }), 0.7);
    assert.equal(await sent({}), Number.NaN);
    assert.equal(await sent({ output_shape: "extract" }), kind === "anthropic" ? Number.NaN : 0);
    assert.equal(await sent({ output_shape: "extract", temperature: 0.2 }), 0.2);
  });

  test("normalises the usage that the vendor reports", async ({ tiers: { fast, service } }) => {
    fast.always({ text: "a", usage: { input: 30, cached: 3, cacheWrite: 2, output: 9, thoughts: 4 } });
    const { usage } = (await (await service.post("/v1/generate", { prompt: "one two three four five" })).json()) as {
      usage: object;
    };
    // 5 × 97 and 3 × 10 and 1 × 400 millionths, with the rates that hold by default.
    assert.deepEqual(usage, {
      input_tokens: 5,
      output_tokens: 1,
      cached_tokens: 3,
      credits: (2 * 100 + 3 * 10 + 400) / 1e6,
    });
  });
});

/** Two tiers of one vendor, each on a separate server. */
async function startTiers(t: Lifetime, kind: VendorKind) {
  const tokenizer = createTokenizer();
  const fast = await startVendor(kind);
  const strong = await startVendor(kind);
  t.onTestFinished(async () => {
    await Promise.all([fast.close(), strong.close()]);
  });
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startWith(t, [fast, strong], databaseUrl);
  const ask = (more: object = {}, schema = SCHEMA, prompt = "Fill it in.") =>
    service.post(
      "/v1/generate",
      JSON.stringify({ prompt, effort: "low", response_format: { type: "json_schema", schema: "@" }, ...more }).replace(
        '"@"',
        () => schema,
      ),
    );
  const reset = () => {
    fast.calls.length = 0;
    strong.calls.length = 0;
    fast.always({ text: VALID });
    strong.always({ text: VALID });
  };
  const refusal = async (response: Response, status: number) => {
    const failure = (await response.json()) as { code: string; request_id: string };
    assert.equal(response.status, status, JSON.stringify(failure));
    const [row] = await pool.query(
      "select outcome, credits_micro, finish_reason from generations where request_id = $1",
      [failure.request_id],
    );
    assert.deepEqual(row, { outcome: failure.code, credits_micro: 0n, finish_reason: null });
    return failure.code;
  };
  return { fast, strong, service, pool, ask, refusal, reset, count: (text: string) => tokenizer.count(text) };
}

test("gives the same answer wherever a stream's bytes are cut in two", async ({ t }) => {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const { url } = await testDatabase(t);
  const service = await startWith(t, [vendor], url);
  const text = "é漢😀 end";
  vendor.always(({ body }) => ({ text: [text.slice(0, 2), text.slice(2)], split: [Number(/#(\d+)/.exec(body)?.[1])] }));
  // The bytes of the complete reply.
  const { length } = Buffer.from(
    await (
      await fetch(`${vendor.url}/v1/chat/completions`, { method: "POST", body: '{"stream":true,"x":"#0"}' })
    ).text(),
  );
  const cuts = Array.from({ length }, (_, i) => i);
  const check = async () => {
    for (let cut = cuts.pop(); cut !== undefined; cut = cuts.pop()) {
      const events = await readEvents(await service.post("/v1/generate:stream", { prompt: `#${cut}` }));
      assert.equal(
        events.map(({ event, data }) => (event === "delta" ? data.text : `<${event}>`)).join(""),
        `${text}<done>`,
        `cut at ${cut}`,
      );
    }
  };
  await Promise.all(Array.from({ length: 16 }, check));
});

/** A service whose catalogue has the first vendor as `fast` and the second as `strong`. */
async function startWith(t: Lifetime, vendors: ScriptedVendor[], databaseUrl: string): Promise<TestService> {
  const first = vendors[0] ?? assert.fail("no vendor");
  const models = vendors.map((vendor, i) => ({
    name: i === 0 ? "the-fast-one" : "the-strong-one",
    vendor: vendor.kind,
    model: vendor.entry().model,
    base_url: vendor.url,
    tier: i === 0 ? "fast" : "strong",
  }));
  const folder = await mkdtemp(join(tmpdir(), "chorus-models-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "models.json");
  await writeFile(file, JSON.stringify({ models }));
  return startService(t, { databaseUrl, env: { ...first.env, CHORUS_MODELS: file } });
}
