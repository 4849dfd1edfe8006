import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, test } from "vitest";
import { envToConfig } from "../../src/config/config.ts";

const folder = mkdtempSync(join(tmpdir(), "chorus-files-"));
// Outside the repository, because a developer's catalogue file there would be read.
const before = process.cwd();
process.chdir(folder);
afterAll(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("takes a variable from the file that NAME_FILE names, without the line break at its end", () => {
  const config = envToConfig({
    OPENAI_API_KEY_FILE: file("openai", "secret\n"),
    OPERATOR_TOKEN_FILE: file("operator", "operator-token-of-mine"),
    CHORUS_RATES_FILE: file("rates.json", '{"output":7}\n'),
    DATABASE_URL_FILE: file("database", "postgres://host/name\r\n"),
    // Not one of the service; the file does not exist.
    SSL_CERT_FILE: join(folder, "nothing"),
  });
  assert.equal(config.models[0]?.apiKey, "secret");
  assert.equal(config.operatorToken, "operator-token-of-mine");
  assert.equal(config.rates.output, 7);
  assert.equal(config.databaseUrl, "postgres://host/name");
});

test("reads files that begin with a byte order mark, as editors of Windows write them", () => {
  const mark = "\uFEFF";
  const measured = { models: { large: { maths: { accuracy: 0.5 } } } };
  const large = { name: "large", vendor: "openai", model: "m", tier: "fast" };
  const accuracies = file("measured.json", mark + JSON.stringify(measured));
  const { models, rates } = envToConfig({
    CHORUS_MODELS: file("marked.json", mark + JSON.stringify({ models: [large], accuracies })),
    CHORUS_RATES_FILE: file("rates.json", `${mark}{"output":7}\r\n`),
    OPENAI_API_KEY_FILE: file("openai", `${mark}secret\r\n`),
  });
  assert.deepEqual([models[0]?.apiKey, models[0]?.accuracy, rates.output], ["secret", { maths: 0.5 }, 7]);
});

test("takes a key that the catalogue names with api_key_env from a file", () => {
  const [model, own] = ["openai", "openai-compatible"].map((vendor) => ({
    name: vendor,
    vendor,
    model: "m",
    tier: "fast",
    base_url: "http://127.0.0.1:1",
    api_key_env: "MINE",
  }));
  const { models, search } = envToConfig({
    CHORUS_MODELS: file("models.json", JSON.stringify({ models: [model, own], search: { backend: "brave" } })),
    MINE_FILE: file("mine", "mine"),
    BRAVE_API_KEY_FILE: file("brave", "search"),
  });
  assert.deepEqual([...models.map(({ apiKey }) => apiKey), search?.apiKey], ["mine", "mine", "search"]);
});

test("names the variable and the file that cannot be used", () => {
  const path = file("key", "secret");
  for (const [env, message] of [
    [{ OPENAI_API_KEY_FILE: join(folder, "nope") }, /^ConfigError: OPENAI_API_KEY_FILE names .*nope, which cannot be/],
    [{ OPENAI_API_KEY_FILE: file("empty", " \n") }, /^ConfigError: OPENAI_API_KEY_FILE names .*empty, which is empty/],
    [{ PORT: "1", PORT_FILE: path }, /^ConfigError: Both PORT and PORT_FILE are set. Unset one of them.$/],
    [
      { CHORUS_WORKERS_FILE: path },
      /^ConfigError: CHORUS_WORKERS cannot come from a file. Unset CHORUS_WORKERS_FILE, /,
    ],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT_FILE: path }, /^ConfigError: OTEL_EXPORTER_OTLP_ENDPOINT cannot come from a file. /],
    [{ OTEL_EXPORTER_OTLP_HEADERS_FILE: path }, /^ConfigError: OTEL_EXPORTER_OTLP_HEADERS cannot come from a file. /],
    [{ CHORUS_TIERS_FILE: path }, /^ConfigError: CHORUS_TIERS must be a JSON list.* from .*key .CHORUS_TIERS_FILE.\.$/],
  ] as [Record<string, string>, RegExp][]) {
    assert.throws(() => envToConfig(env), message);
  }
  assert.equal(envToConfig({ OPENAI_API_KEY: "", OPENAI_API_KEY_FILE: path }).models[0]?.apiKey, "secret");
});
