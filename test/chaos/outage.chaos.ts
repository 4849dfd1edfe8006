import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "vitest";
import { checkBooks, makeAccount, makeFolder } from "../helpers/books.ts";
import { checkCharges, startFaultyVendor, startLoad } from "../helpers/load.ts";
import { startServer } from "../helpers/server.ts";
import { startOwnService } from "../helpers/service.ts";

const AWAY_MS = Number(process.env.CHORUS_TEST_AWAY_MS ?? 20_000);

// Concurrent, because these tests wait for real time to pass.
describe.concurrent("under load, with a database that is unreachable for some time", () => {
  for (const how of ["stopped", "frozen"] as const) {
    test(`charges every answer and no failure, and recovers, after the database was ${how}`, async (t) => {
      const server = await startServer(t);
      const vendor = await startFaultyVendor();
      t.onTestFinished(() => vendor.close());
      for (const id of ["ws_mixed", "ws_keyed"])
        await makeAccount(server.pool, id, { secret: id, granted: 10n ** 12n });
      const services = await Promise.all(
        [1, 2].map(async () =>
          startOwnService(t, {
            databaseUrl: server.url,
            dataDir: await makeFolder(t),
            env: { ...vendor.env, LOG_LEVEL: "error" },
          }),
        ),
      );
      const load = startLoad(
        t,
        () => services,
        [
          { workspaceId: "ws_mixed", mix: { unary: 0.6, stream: 0.3, leave: 0.1, keyed: 0 } },
          { workspaceId: "ws_keyed", mix: { unary: 0, stream: 0, leave: 0, keyed: 1 } },
        ],
        24,
      );
      await sleep(3_000);
      const before = load.seen.filter(({ outcome }) => outcome === "answered").length;
      assert.ok(before > 0, "no request was answered before the outage");

      if (how === "stopped") await server.stop();
      else await server.freeze();
      // Until then running requests end and the services detect the outage; they refuse new requests at once.
      await sleep(4_000);
      const waits: number[] = [];
      for (let i = 0; i < 20; i++) {
        const start = performance.now();
        const response = await services[i % 2]?.post("/v1/generate", { prompt: "Now?" }, { "x-api-key": "ws_mixed" });
        waits.push(performance.now() - start);
        assert.equal(response?.status, 503);
        assert.equal(response.headers.get("retry-after"), "1");
        await response.body?.cancel();
      }
      waits.sort((a, b) => a - b);
      await t.annotate(`refused within ${waits[10]?.toFixed(0)} ms (median), ${waits.at(-1)?.toFixed(0)} ms (slowest)`);
      assert.ok((waits.at(-1) ?? 0) < 500, "refusals take less than 500 ms");
      await sleep(AWAY_MS - 4_000);
      if (how === "stopped") await server.start();
      else server.thaw();

      const back = performance.now();
      for (;;) {
        const response = await services[0]?.post("/v1/generate", { prompt: "Now?" }, { "x-api-key": "ws_mixed" });
        await response?.body?.cancel();
        if (response?.status === 200) break;
        assert.ok(performance.now() - back < 10_000, "not back in 10 s");
        await sleep(20);
      }
      await t.annotate(`back after ${(performance.now() - back).toFixed(0)} ms`);
      await sleep(3_000);
      await load.finish();
      for (
        const until = Date.now() + 30_000;
        (await server.pool.query("select from grants")).length > 0;
        await sleep(100)
      )
        assert.ok(Date.now() < until, "holds were not released");
      await checkBooks(server.pool);
      await t.annotate(JSON.stringify(await checkCharges(server.pool, load)));
      for (const service of services) assert.doesNotMatch(service.output(), /"level":50/);
    });
  }
});
