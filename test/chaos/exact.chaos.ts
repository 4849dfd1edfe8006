import assert from "node:assert/strict";
import { test } from "vitest";
import { accountOf, checkBooks, makeAccount, makeFolder } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { startOwnService } from "../helpers/service.ts";
import { startVendor } from "../helpers/vendors.ts";

test("answers exactly 100 of 1,000 concurrent requests on two services with a balance for 100", async (t) => {
  const { pool, url } = await testDatabase(t);
  // Longer than max_tokens, so each answer costs its whole hold.
  const vendor = await startVendor("openai", { text: "again and again ".repeat(40), headersMs: 200 });
  t.onTestFinished(() => vendor.close());
  const start = async () => startOwnService(t, { databaseUrl: url, dataDir: await makeFolder(t), env: vendor.env });
  const services = [await start(), await start()];
  const ask = (i: number, secret: string) =>
    services[i % 2]?.post("/v1/generate", { prompt: "Say it.", max_tokens: 20 }, { "x-api-key": secret });

  await makeAccount(pool, "ws_rich", { secret: "rich", granted: 10n ** 9n });
  const first = (await (await ask(0, "rich"))?.json()) as { usage: { credits: number; output_tokens: number } };
  assert.equal(first.usage.output_tokens, 20);
  const price = Math.round(first.usage.credits * 1e6);
  await makeAccount(pool, "ws_poor", { secret: "poor", granted: 30 * price + 1, purchased: 70 * price - 1 });

  const seen = await Promise.all(
    Array.from({ length: 1_000 }, async (_, i) => {
      const response = await ask(i, "poor");
      const { code, limit, usage } = (await (response ?? Response.json({})).json()) as {
        code?: string;
        limit?: string;
        usage?: { credits: number };
      };
      return `${response?.status} ${code ?? limit ?? (usage?.credits === price / 1e6 ? "paid" : "wrong")}`;
    }),
  );
  const counts = Object.fromEntries(
    Object.entries(Object.groupBy(seen, (one) => one)).map(([k, all]) => [k, all?.length]),
  );
  const { "200 paid": paid, "402 insufficient_credit": without = 0, "429 held_credit": held = 0, ...others } = counts;
  assert.deepEqual(others, {});
  assert.equal(paid, 100);
  assert.equal(without + held, 900);
  await t.annotate(`refused: ${held} while other requests held the credit, ${without} after it was spent`);
  assert.deepEqual(await accountOf(pool, "ws_poor"), { granted: 0n, purchased: 0n, held: 0n, running: 0 });
  await checkBooks(pool);
});
