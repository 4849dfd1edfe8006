import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { openBrowser } from "./helpers/browser.ts";
import { CHILD_ENV } from "./helpers/environment.ts";
import { test as base } from "./helpers/fixtures.ts";
import { blocks, ROOT, WITHOUT_NPM } from "./helpers/guides.ts";
import { until } from "./helpers/until.ts";

const execute = promisify(execFile);

/** The default tiers. */
const test = base.extend("env", { scope: "file" }, { CHORUS_TIERS: "" });

test("docs/operators-day.md: an operator's day works as written, without SQL", async ({
  service,
  vendor,
  database,
}) => {
  const { dataDir, url } = service;
  const env = { ...CHILD_ENV, DATA_DIR: dataDir, npm_config_update_notifier: "false" };
  const run = async (text: string, more: Record<string, string> = {}) =>
    (await execute("sh", ["-ec", WITHOUT_NPM + text], { cwd: ROOT, env: { ...env, ...more } })).stdout;
  const [customer, link, credit, refused, limit, down, owner, operator, evening, ...more] = (
    await blocks("docs/operators-day.md", "sh")
  ).map(({ text }) => text);
  assert.deepEqual(more, []);

  assert.match(await run(customer ?? ""), /^purchase +INV-2041 +500 /m);
  const [, secret = ""] = /#sign-in=(li_\w+)/.exec(await run(link ?? "")) ?? [];
  assert.equal((await openBrowser(url).signIn(secret)).status, 200);
  const shown = await run(credit ?? "");
  assert.match(shown, /^tier +1$/m);
  assert.match(shown, /^tier +2 \(by an operator\)$/m);
  assert.match(shown, /^grant +goodwill-7 +25 /m);

  // The customer reaches a limit.
  const chorus = "npm run --silent chorus --";
  const made = await run(`${chorus} --json keys create --workspace acme`);
  await run(`${chorus} limits set acme --requests-per-day 1`);
  const ask = () => service.post("/v1/generate", { prompt: "hi" }, { "x-api-key": JSON.parse(made).secret });
  assert.deepEqual([(await ask()).status, (await ask()).status], [200, 429]);
  const why = await run(refused ?? "");
  assert.match(why, /^acme .* limit reached: requests_per_day$/m);
  assert.match(why, /^requests_per_day +1 +1 +an operator$/m);
  assert.match(await run(limit ?? ""), /^requests_per_day +500,000 +an operator$/m);

  vendor.always({ status: 500 });
  for (let i = 0; i < 6; i++) await ask();
  await until(async () => /^openai-\w+ .* (down|degraded) /m.test(await run(down ?? "")));
  vendor.reset();

  assert.match(await run(owner ?? ""), /^Owner token \(shown only once\): ow_/m);
  assert.match(await run(operator ?? "", { DATABASE_URL: database.url }), /^Operator token \(shown only once\): op_/m);
  const checked = await run(evening ?? "");
  assert.match(checked, /^Ledger, balances, holds and usage agree\.$/m);
  assert.match(checked, /^\S+ \S+ +operator +tok_\w+ +credit\.purchase .*INV-2041/m);
  assert.match(checked, /^\S+ \S+ +- +service +command line +operator_token\.replace /m);
});
