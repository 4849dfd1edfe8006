import assert from "node:assert/strict";
import { test } from "vitest";
import { startServer } from "../helpers/server.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

for (const outage of ["stop", "freeze"] as const) {
  test(`/readyz leaves an absent database some seconds, then answers 503 until it is back (${outage})`, async (t) => {
    const server = await startServer(t);
    const service = await startOwnService(t, { databaseUrl: server.url, env: { OPENAI_API_KEY: "" } });
    // Each on its own connection, because the service closes an idle one when a busy machine is about to reuse it.
    const status = async (path: string) => (await service.get(path, { connection: "close" })).status;
    assert.deepEqual([await status("/readyz"), await status("/v1/quotas")], [200, 200]);

    await server[outage]();
    let requestsFailed = false;
    let readyWhileFailing = false;
    const requests: Promise<void>[] = [];
    await until(async () => {
      const isReady = (await status("/readyz")) === 200;
      if (isReady && requestsFailed) readyWhileFailing = true;
      // Not awaited here: one that is sent before the service notices the outage takes as long as a statement may.
      const sent = status("/v1/quotas").then((code) => {
        requestsFailed ||= code === 503;
      });
      requests.push(sent);
      return !isReady;
    }, 200);
    await Promise.all(requests);
    assert.ok(readyWhileFailing, "an outage of less than ten seconds changes nothing");
    assert.equal(await status("/healthz"), 200);

    if (outage === "stop") await server.start();
    else server.thaw();
    await until(async () => (await status("/readyz")) === 200, 50);
    assert.equal(await status("/v1/quotas"), 200);
  });
}
