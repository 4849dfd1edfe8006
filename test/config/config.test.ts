import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as fc from "fast-check";
import { afterAll, test } from "vitest";
import { ConfigError, envToConfig } from "../../src/config/config.ts";

const folder = mkdtempSync(join(tmpdir(), "chorus-config-"));
// Outside the repository, because a developer's catalogue file there would be read.
const before = process.cwd();
process.chdir(folder);
afterAll(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true });
});

function refused(env: Record<string, string>, ...parts: string[]): void {
  assert.throws(
    () => envToConfig(env),
    (error: unknown) => {
      assert.ok(error instanceof ConfigError, String(error));
      for (const part of parts) assert.ok(error.message.includes(part), `${error.message} – ${part}`);
      return true;
    },
  );
}

function catalogue(value: unknown): Record<string, string> {
  const path = join(folder, "models.json");
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return { CHORUS_MODELS: path };
}

test("returns the documented defaults for an empty environment", () => {
  const config = envToConfig({}, { openFiles: 1_024, memoryBytes: 2 ** 34 });
  assert.deepEqual(
    config.models.map(({ vendor, tier }) => [vendor, tier]),
    [
      ["offline", "fast"],
      ["offline", "strong"],
    ],
  );
  assert.deepEqual(
    { ...config, models: [], tiers: config.tiers.map(({ name }) => name) },
    {
      public: { host: "127.0.0.1", port: 8080 },
      rpc: { host: "127.0.0.1", port: 8081, names: [] },
      databaseUrl: undefined,
      databaseListenUrl: undefined,
      migrates: true,
      workers: 1,
      databaseConnections: 10,
      dataDir: resolve(".chorus"),
      bootstrapApiKey: undefined,
      secretsFile: undefined,
      catalogue: undefined,
      operatorToken: undefined,
      models: [],
      tiers: ["free", "1", "2", "3", "4", "unlimited"],
      timeouts: { connectMs: 5_000, firstTokenMs: 60_000, betweenChunksMs: 30_000 },
      rates: { input: 100, cached: 10, output: 400 },
      alerts: { compareMs: 15_000, retryMs: 5_000 },
      webhookDnsServers: [],
      webhookHosts: [],
      mail: undefined,
      search: undefined,
      learning: { from: "off", referee: undefined },
      levels: { medium: 0.22, high: 0.6 },
      deadlines: { low: 30_000, medium: 60_000, high: 180_000 },
      drainMs: 20_000,
      runs: { isOn: true, days: 30, perDay: 100_000, textKeys: [], textBytesPerDay: 1_000_000_000 },
      retentionDays: 400,
      bodyBudgetBytes: 268_435_456,
      connections: { public: 312, internal: 104, vendors: 416 },
      maxLoopDelayMs: 50,
      probesVendors: true,
      warmsUp: true,
      body: { idleMs: 10_000, totalMs: 300_000 },
      stream: { headersMs: 2_000, keepAliveMs: 15_000, stallMs: 30_000 },
      console: { folder: resolve(import.meta.dirname, "../../console/dist"), proxies: 0 },
      usdPerCredit: undefined,
      oidc: undefined,
      logLevel: "info",
      tracing: undefined,
    },
  );
});

test("treats an empty variable as unset", () => {
  const names =
    "HOST PORT RPC_HOST RPC_PORT DATABASE_URL DATA_DIR BOOTSTRAP_API_KEY OPERATOR_TOKEN OPENAI_API_KEY CHORUS_MODELS";
  const more = "LOG_LEVEL CHORUS_RATES CHORUS_DEADLINES_MS CHORUS_DRAIN_MS CHORUS_STREAM_MS";
  const bodies = "CHORUS_BODY_BUDGET_BYTES CHORUS_BODY_MS";
  const env = Object.fromEntries(`${names} ${more} ${bodies}`.split(" ").map((name) => [name, ""]));
  assert.deepEqual(envToConfig(env), envToConfig({}));
});

test("refuses an invalid value and names its variable and the expected values", () => {
  for (const name of ["PORT", "RPC_PORT"]) {
    for (const value of ["-1", "65536", "80.5", "8e3", "0x50", " 80", "http"])
      refused({ [name]: value }, name, "65535");
  }
  for (const value of ["-1", "soon", "3600001"]) refused({ CHORUS_DRAIN_MS: value }, "CHORUS_DRAIN_MS");
  refused({ CHORUS_BODY_BUDGET_BYTES: "1000" }, "CHORUS_BODY_BUDGET_BYTES", "67108864");
  for (const value of ["mysql://host", "host:5432", "postgres:/host"]) refused({ DATABASE_URL: value }, "DATABASE_URL");
  refused({ DATABASE_LISTEN_URL: "direct:5432" }, "DATABASE_LISTEN_URL");
  refused({ DATABASE_LISTEN_URL: "postgres://direct" }, "DATABASE_LISTEN_URL needs DATABASE_URL");
  for (const value of ["loud", "INFO"]) refused({ LOG_LEVEL: value }, "LOG_LEVEL", "info");
  for (const value of ["false", "NEVER"]) refused({ CHORUS_MIGRATE: value }, "CHORUS_MIGRATE", "auto, never");
  for (const name of [
    "CHORUS_STREAM_MS",
    "CHORUS_BODY_MS",
    "CHORUS_DEADLINES_MS",
    "CHORUS_MODEL_TIMEOUTS_MS",
    "CHORUS_RATES",
  ]) {
    for (const value of ["1", "[]", "null", '"x"']) refused({ [name]: value }, name, "}; it is no object. Correct it.");
    refused({ [name]: "{" }, name, "JSON object", "}; it is not valid JSON. Correct it.");
    refused({ [name]: '{"nope":1}' }, name, '"nope"');
  }
  // Node's timers fire at once beyond 2^31 - 1 milliseconds, and with 0 every request times out.
  for (const value of [0, -1, 2 ** 31, 1e300, '"1"']) {
    refused({ CHORUS_STREAM_MS: `{"stallMs":${value}}` }, "CHORUS_STREAM_MS", '"stallMs"');
    refused({ CHORUS_DEADLINES_MS: `{"low":${value}}` }, "CHORUS_DEADLINES_MS", '"low"');
  }
  for (const value of [-1, "1e999", null]) refused({ CHORUS_RATES: `{"input":${value}}` }, "CHORUS_RATES", '"input"');
  refused({ OPENAI_API_KEY: "a", OPENAI_BASE_URL: "localhost" }, "OPENAI_BASE_URL");
  refused({ OPENAI_API_KEY: "a", OPENAI_BASE_URL: "https://host/v1?version=1" }, "OPENAI_BASE_URL", "or query");
});

test("requires the thresholds of the levels to increase", () => {
  assert.deepEqual(envToConfig({ CHORUS_LEVELS: '{"medium":0.2}' }).levels, { medium: 0.2, high: 0.6 });
  refused({ CHORUS_LEVELS: '{"medium":0.7}' }, "CHORUS_LEVELS", '"medium"', "above");
  refused({ CHORUS_LEVELS: '{"high":1.1}' }, "CHORUS_LEVELS", '"high"', "from 0 to 1");
});

test("requires a referee with a model, a share and a budget where it is learned from one", () => {
  const referee = { model: "a", share: 0.1, usdPerDay: 5 };
  const env = { CHORUS_LEARNING: "referee", CHORUS_REFEREE: JSON.stringify(referee) };
  assert.deepEqual(envToConfig(env).learning, { from: "referee", referee });
  for (const from of ["", "off", "outcomes"]) {
    assert.deepEqual(envToConfig({ CHORUS_LEARNING: from }).learning, { from: from || "off", referee: undefined });
    refused({ ...env, CHORUS_LEARNING: from }, "CHORUS_REFEREE needs CHORUS_LEARNING=referee.", "unset CHORUS_REFEREE");
  }
  refused({ CHORUS_LEARNING: "yes" }, "CHORUS_LEARNING", "off, outcomes, referee");
  refused({ CHORUS_LEARNING: "referee" }, "CHORUS_REFEREE");
  for (const [more, name] of [
    [{ model: 1 }, '"model"'],
    [{ share: 1.1 }, '"share"'],
    [{ usdPerDay: -1 }, '"usdPerDay"'],
    [{ budget: 1 }, '"budget"'],
  ] as const) {
    refused({ ...env, CHORUS_REFEREE: JSON.stringify({ ...referee, ...more }) }, "CHORUS_REFEREE", name);
  }
  refused({ CHORUS_REFEREE: "{" }, "CHORUS_REFEREE", "JSON");
  refused({ CHORUS_REFEREE: "[]" }, "CHORUS_REFEREE", "}; it is no object");
});

test("takes the search backend from the catalogue or the environment", () => {
  assert.equal(envToConfig({ BRAVE_API_KEY: "key" }).search?.backend, "brave");
  const models = [{ name: "a", vendor: "offline", tier: "fast" }];
  const env = { ...catalogue({ models, search: { backend: "tavily" } }), TAVILY_API_KEY: "t", BRAVE_API_KEY: "b" };
  assert.deepEqual([envToConfig(env).search?.backend, envToConfig(env).search?.apiKey], ["tavily", "t"]);
  refused(catalogue({ models, search: { backend: "other" } }), "CHORUS_MODELS", "search.backend", "searxng");
  refused({ SEARXNG_BASE_URL: "ftp://x" }, "SEARXNG_BASE_URL");
});

test("keeps the default of each member that is left out", () => {
  assert.deepEqual(envToConfig({ CHORUS_RATES: '{"output":0.5}' }).rates, { input: 100, cached: 10, output: 0.5 });
  assert.deepEqual(envToConfig({ CHORUS_STREAM_MS: '{"stallMs":1}' }).stream, {
    headersMs: 2_000,
    keepAliveMs: 15_000,
    stallMs: 1,
  });
});

test("adds a fast and a strong model for each vendor with a key", () => {
  const { models } = envToConfig({
    OPENAI_API_KEY: "o",
    ANTHROPIC_API_KEY: "a",
    GEMINI_API_KEY: "g",
    GEMINI_BASE_URL: "http://here/",
  });
  assert.deepEqual(
    models.map(({ vendor, tier, apiKey, baseUrl }) => [vendor, tier, apiKey, baseUrl]),
    [
      ["openai", "fast", "o", undefined],
      ["openai", "strong", "o", undefined],
      ["anthropic", "fast", "a", undefined],
      ["anthropic", "strong", "a", undefined],
      ["google", "fast", "g", "http://here"],
      ["google", "strong", "g", "http://here"],
    ],
  );
});

test("refuses a key that no header can carry, and never quotes it", () => {
  const own = { name: "a", vendor: "openai-compatible", model: "m", base_url: "http://127.0.0.1:1", tier: "fast" };
  const env = catalogue({ models: [{ ...own, api_key_env: "MINE" }] });
  const names = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MINE", "BRAVE_API_KEY", "TAVILY_API_KEY"];
  for (const name of names) {
    for (const value of ["sk-secret\r", "sk-secret\n", "sk secret", "sk-secret–"]) {
      const given = { ...(name === "MINE" ? env : {}), [name]: value };
      refused(given, `${name} must be printable ASCII without spaces and line breaks`, "Set it again.");
      assert.throws(
        () => envToConfig(given),
        ({ message }: Error) => !message.includes("secret"),
      );
    }
  }
});

test("replaces the built-in models with the catalogue and uses the vendor's key unless it names another", () => {
  const env = catalogue({
    models: [
      { name: "a", vendor: "openai-compatible", model: "m", base_url: "http://127.0.0.1:1/v1/", tier: "fast" },
      {
        name: "b",
        vendor: "anthropic",
        model: "n",
        tier: "strong",
        api_key_env: "MINE",
        price: { input: 5, output: 25 },
      },
      {
        name: "c",
        vendor: "offline",
        tier: "strong",
        context_tokens: 1000,
        max_output_tokens: 500,
        max_concurrency: 20,
        accuracy: 0.5,
        images: true,
        json_schema: false,
      },
    ],
  });
  assert.deepEqual(envToConfig({ ...env, MINE: "key", OPENAI_API_KEY: "unused" }).models, [
    {
      name: "a",
      vendor: "openai-compatible",
      model: "m",
      tier: "fast",
      baseUrl: "http://127.0.0.1:1/v1",
      images: false,
      jsonSchema: false,
    },
    {
      name: "b",
      vendor: "anthropic",
      model: "n",
      tier: "strong",
      apiKey: "key",
      apiKeyEnv: "MINE",
      price: { input: 5, output: 25, cached: 5 },
      images: false,
      jsonSchema: true,
    },
    {
      name: "c",
      vendor: "offline",
      model: "offline-strong",
      tier: "strong",
      contextTokens: 1000,
      maxOutputTokens: 500,
      maxConcurrency: 20,
      accuracy: 0.5,
      images: true,
      jsonSchema: false,
    },
  ]);
});

test("reads the API of a model, which is chat completions by default", () => {
  const server = { vendor: "openai-compatible", model: "m", base_url: "http://127.0.0.1:1", tier: "fast" };
  const models = [{}, { api: "chat" }, { api: "responses" }].map((more, i) => ({ ...server, ...more, name: `m${i}` }));
  const own = { name: "own", vendor: "openai", api: "responses", model: "gpt-6-astra", tier: "strong" };
  const read = envToConfig({ ...catalogue({ models: [...models, own] }), OPENAI_API_KEY: "k" }).models;
  assert.deepEqual(
    read.map(({ api }) => api),
    [undefined, undefined, "responses", "responses"],
  );
});

test("refuses an invalid catalogue and says where and why", () => {
  const good = { name: "a", vendor: "openai-compatible", model: "m", base_url: "http://127.0.0.1:1", tier: "fast" };
  refused({ CHORUS_MODELS: join(folder, "nope.json") }, "CHORUS_MODELS", "cannot be read");
  for (const [value, ...parts] of [
    ["{", "must be a JSON object; it is not valid JSON"],
    ["[]", "JSON object"],
    [{}, '"models"'],
    [{ models: [] }, '"models"'],
    [{ models: [1] }, "models[0]"],
    [{ models: [good, { ...good, name: "b", vendor: "acme" }] }, "models[1].vendor", "openai-compatible"],
    [{ models: [{ ...good, tier: "slow" }] }, "models[0].tier", "fast"],
    [{ models: [{ ...good, api: "realtime" }] }, "models[0].api", "chat, responses. Correct it."],
    [{ models: [{ ...good, api: null }] }, "models[0].api", "must be a string"],
    [{ models: [{ ...good, vendor: "offline", api: "chat" }] }, "models[0].api", "openai-compatible only. Remove it."],
    [{ models: [{ ...good, name: "" }] }, "models[0].name"],
    [{ models: [{ ...good, model: 1 }] }, "models[0].model"],
    [{ models: [{ ...good, base_url: undefined }] }, '"base_url"'],
    [{ models: [{ ...good, base_url: "ftp://x" }] }, "models[0].base_url"],
    [{ models: [{ ...good, base_url: "http://user:word@x/v1" }] }, "models[0].base_url", "without a user name"],
    [{ models: [{ ...good, base_url: "http://x/v1?api-version=1" }] }, "models[0].base_url", "or query"],
    [{ models: [{ ...good, baseUrl: "http://x" }] }, '"baseUrl"'],
    [{ models: [{ ...good, api_key_env: "NOPE" }] }, "NOPE"],
    [{ models: [{ ...good, vendor: "openai" }] }, "OPENAI_API_KEY"],
    [{ models: [{ ...good, price: { input: -1, output: 1 } }] }, "models[0].price.input"],
    [{ models: [{ ...good, price: { input: 1 } }] }, "models[0].price.output"],
    [JSON.stringify({ models: [{ ...good, price: { input: "9" } }] }).replace('"9"', "1e999"), "models[0].price.input"],
    [{ models: [{ ...good, price: { input: 1, output: 1, cache: 0.1 } }] }, "models[0].price", '"cache"', "cached"],
    [{ models: [good], Search: { backend: "brave" } }, '"Search"', "accuracies"],
    [{ models: [{ ...good, context_tokens: 0.5 }] }, "context_tokens"],
    [{ models: [{ ...good, max_output_tokens: 0 }] }, "models[0].max_output_tokens", "whole number above 0"],
    [{ models: [{ ...good, max_concurrency: 0 }] }, "models[0].max_concurrency", "whole number above 0"],
    [{ models: [{ ...good, max_output_tokens: 1.5 }] }, "models[0].max_output_tokens"],
    [{ models: [{ ...good, max_output_tokens: "9" }] }, "models[0].max_output_tokens"],
    [{ models: [{ ...good, images: "yes" }] }, "images"],
    [{ models: [good, good] }, '"a"'],
  ] as [unknown, ...string[]][]) {
    refused(catalogue(value), "CHORUS_MODELS", ...parts);
  }
});

test("throws only ConfigError, for any text", () => {
  const names = [
    "PORT",
    "DATABASE_URL",
    "CHORUS_RATES",
    "CHORUS_STREAM_MS",
    "CHORUS_DRAIN_MS",
    "LOG_LEVEL",
    "OPENAI_BASE_URL",
  ];
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    fc.string().map((tail) => `postgres://${tail}`),
  );
  fc.assert(
    fc.property(fc.constantFrom(...names), text, (name, value) => {
      try {
        envToConfig({ OPENAI_API_KEY: "a", [name]: value });
      } catch (error) {
        assert.ok(error instanceof ConfigError);
        assert.ok(error.message.includes(name));
      }
    }),
  );
});

test("reads the names of the internal listener", () => {
  assert.deepEqual(envToConfig({ RPC_NAMES: " Chorus.example.com,.svc.example.com, " }).rpc.names, [
    "chorus.example.com",
    ".svc.example.com",
  ]);
  for (const RPC_NAMES of ["http://chorus.example.com", "chorus.example.com:8081", "a b", "a..b"])
    assert.throws(() => envToConfig({ RPC_NAMES }), /^ConfigError: RPC_NAMES must be host names separated by commas/);
});

test("reads the name servers for webhooks", () => {
  const read = (CHORUS_WEBHOOK_DNS_SERVERS: string) => envToConfig({ CHORUS_WEBHOOK_DNS_SERVERS }).webhookDnsServers;
  assert.deepEqual(read(" 10.0.0.2, 10.0.0.3:5353,[fd00::2]:53,fd00::3,"), [
    ...["10.0.0.2", "10.0.0.3:5353", "[fd00::2]:53", "fd00::3"],
  ]);
  assert.deepEqual(read(""), []);
  for (const wrong of ["dns.example.com", "10.0.0", "https://10.0.0.2"]) {
    assert.throws(() => read(wrong), /^ConfigError: CHORUS_WEBHOOK_DNS_SERVERS must be IP addresses of name servers/);
  }
});

test("reads the mail server, and never quotes its address, which may have a password", () => {
  const from = { CHORUS_MAIL_FROM: "chorus@example.com" };
  const read = (CHORUS_SMTP_URL: string, more = {}) => envToConfig({ ...from, CHORUS_SMTP_URL, ...more }).mail;
  assert.deepEqual(
    read("smtps://ann%40example.com:p%40ss@mail.example.com", { CHORUS_MAIL_DOMAINS: "Example.com,.b" }),
    {
      ...{ host: "mail.example.com", port: 465, secure: true, from: "chorus@example.com" },
      ...{ login: { user: "ann@example.com", password: "p@ss" }, domains: ["example.com", ".b"] },
    },
  );
  const plain = { secure: false, login: undefined, from: "chorus@example.com", domains: [] };
  assert.deepEqual(read("smtp://mail"), { host: "mail", port: 587, ...plain });
  assert.deepEqual(read("smtp://[fd00::2]:25/"), { host: "fd00::2", port: 25, ...plain });
  assert.equal(envToConfig({ CHORUS_SMTP_URL: "" }).mail, undefined);
  const wrong = [
    "mail.example.com",
    "smtp:",
    "http://mail",
    "smtp://ann@mail",
    "smtp://:s3cret@mail",
    "smtp://mail/s3cret",
  ];
  for (const CHORUS_SMTP_URL of [...wrong, "smtp://ann:s3cret%@mail", "smtp://ann:s3cret@mail:99999", "smtp://ma il"]) {
    refused({ ...from, CHORUS_SMTP_URL }, "CHORUS_SMTP_URL must be the address of a mail server");
    assert.throws(
      () => read(CHORUS_SMTP_URL),
      (error: Error) => !error.message.includes("s3cret"),
    );
  }
  refused({ CHORUS_SMTP_URL: "smtp://mail" }, "CHORUS_MAIL_FROM must be the e-mail address");
  for (const address of ["chorus", "Chorus <a@b>", "a@b\r\nBcc: c@d"])
    refused(
      { CHORUS_SMTP_URL: "smtp://mail", CHORUS_MAIL_FROM: address },
      "CHORUS_MAIL_FROM must be the e-mail address",
    );
  refused(from, "CHORUS_MAIL_FROM needs CHORUS_SMTP_URL");
});

test("divides memory, connections and calls among the workers, and gives each the least that it needs", () => {
  const resources = { openFiles: 65_536, memoryBytes: 4 * 2 ** 30 };
  const model = { name: "a", vendor: "openai-compatible", model: "m", base_url: "http://127.0.0.1:1", tier: "fast" };
  const models = catalogue({ models: [{ ...model, max_concurrency: 9 }] });
  const read = (workers: string) => envToConfig({ ...models, CHORUS_WORKERS: workers }, resources);
  const [one, two, many] = [read("1"), read("2"), read("64")];
  assert.equal(two.bodyBudgetBytes, one.bodyBudgetBytes / 2);
  assert.equal(many.bodyBudgetBytes, 64 * 2 ** 20);
  assert.deepEqual(
    [one, two, many].map(({ databaseConnections }) => databaseConnections),
    [10, 5, 5],
  );
  assert.deepEqual(
    [one, two, many].map((config) => config.models[0]?.maxConcurrency),
    [9, 4, 1],
  );
  assert.ok(two.connections.public < one.connections.public);
  assert.ok(read("auto").workers >= 1);
  for (const value of ["0", "257", "all", "2.5"]) {
    refused(
      { CHORUS_WORKERS: value },
      `CHORUS_WORKERS must be auto or a whole number from 1 to 256, but is "${value}"`,
    );
  }
});

test("reads keys for the text of runs, the newest first, and refuses what is none without quoting it", () => {
  const [one, two] = [Buffer.alloc(32, 1).toString("base64"), Buffer.alloc(32, 2).toString("base64")];
  const { textKeys } = envToConfig({ CHORUS_RUN_TEXT_KEY: `${one}, ${two}` }).runs;
  assert.deepEqual(
    textKeys.map((key) => key[0]),
    [1, 2],
  );
  const wrong = [
    "secret",
    Buffer.alloc(31).toString("base64"),
    `${one},${two.slice(4)}`,
    Buffer.alloc(32).toString("hex"),
  ];
  for (const text of wrong) {
    refused({ CHORUS_RUN_TEXT_KEY: text }, "CHORUS_RUN_TEXT_KEY must be a key of 32", "openssl rand -base64 32");
    assert.throws(
      () => envToConfig({ CHORUS_RUN_TEXT_KEY: text }),
      (error: Error) => !error.message.includes(text),
    );
  }
  refused({ CHORUS_RUN_TEXT_KEY: one, CHORUS_RUNS: "off" }, "CHORUS_RUN_TEXT_KEY needs runs");
});
