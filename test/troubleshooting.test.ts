import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, test } from "vitest";
import { runCli } from "./helpers/cli.ts";
import { blocks, ROOT } from "./helpers/guides.ts";
import type { Lifetime } from "./helpers/lifetime.ts";
import { startService } from "./helpers/service.ts";
import { until } from "./helpers/until.ts";

const PAGE = "docs/troubleshooting.md";
const KEY = "sk-proj-wrong";

/** The text of all files of the product. Texts that are written in several parts are joined. */
async function sources(): Promise<string> {
  const texts = ["src", "console/src"].map(async (folder) => {
    const names = await readdir(join(ROOT, folder), { recursive: true });
    const files = names.filter((name) => /\.(ts|tsx|cjs)$/.test(name));
    return Promise.all(files.map((name) => readFile(join(ROOT, folder, name), "utf8")));
  });
  return (await Promise.all(texts))
    .flat()
    .join("\n")
    .replace(/["`] \+\s*["`]/g, "");
}

describe(PAGE, () => {
  test("quotes only messages that the product has", async () => {
    const page = await readFile(join(ROOT, PAGE), "utf8");
    const code = await sources();
    const messages = [...page.matchAll(/^\| `([^`]+ [^`]+)` \|/gm)].map(([, message = ""]) => message);
    assert.ok(messages.length > 40, String(messages.length));
    // Names, addresses and numbers are templates in the source.
    const parts = messages.flatMap((message) => message.split("…").map((part) => part.trim()));
    assert.deepEqual(
      parts.filter((part) => !code.includes(part)),
      [],
    );
  });

  test("shows what each place says of a wrong key", async (t) => {
    const service = await startService(t, { env: await startRefusing(t) });
    const [first, problem, models, ready, refused, metric] = (await blocks(PAGE, "text")).map(({ text }) =>
      plain(text),
    );
    const [line] = (await blocks(PAGE, "json")).map(({ text }) => JSON.parse(text));
    const said = plain(service.output());
    assert.ok(first && said.includes(first), said);
    assert.ok(problem && said.includes(problem), said);

    const lines = service
      .output()
      .split("\n")
      .filter((each) => each.includes('"model":"openai-fast"'));
    const time = line.time;
    assert.deepEqual({ ...JSON.parse(lines[0] ?? "{}"), time }, line);

    const env = { CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken };
    await until(async () => {
      // The page leaves columns out.
      const { stdout } = await runCli(["models"], env);
      const shown = stdout.replace(/ANSWERED AS|CALLS .* RUNNING| - |(?<=down) .*? 0(?= +401)/g, "");
      return plain(shown) === models;
    });
    const readiness = await service.get("/readyz");
    assert.deepEqual([readiness.status, plain(await readiness.text())], [503, ready]);
    const failed = await service.post("/v1/generate", { prompt: "What is 17 * 23 + 4?" });
    assert.deepEqual([failed.status, plain(await failed.text())], [502, refused]);
    assert.ok(metric && (await (await fetch(`${service.rpcUrl}/metrics`)).text()).includes(metric));
    assert.ok(!service.output().includes(KEY));
  });
});

/** A server that refuses a key as OpenAI does. @returns the variables of a service that uses it */
async function startRefusing(t: Lifetime): Promise<Record<string, string>> {
  const message = `Incorrect API key provided: ${KEY}. You can find your API key at https://platform.openai.com.`;
  const error = { message, type: "invalid_request_error", param: null, code: "invalid_api_key" };
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: url, CHORUS_PROBES: "on" };
}

/** The text in one line, without what differs from run to run. */
function plain(text: string): string {
  return text
    .replace(/ at http:\/\/127\.0\.0\.1:\d+/g, "")
    .replace(/\d+ s ago/g, "… ago")
    .replace(/req_\w+/g, "req_…")
    .replace(/\s+/g, " ")
    .trim();
}
