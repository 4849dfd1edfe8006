import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../../gen/health/v1/health_pb.js";
import { rpcFailure, serveRpc, transports } from "../../helpers/rpc.ts";

test("check and list report the serving status of known names", async (t) => {
  let isReady = true;
  const { url } = await serveRpc(t, { ready: () => isReady });
  for (const transport of Object.values(transports(url))) {
    const client = createClient(Health, transport);
    for (isReady of [true, false]) {
      const expected = isReady ? Status.SERVING : Status.NOT_SERVING;
      for (const service of ["", "chorus.v1.GenerationService"]) {
        assert.equal((await client.check({ service })).status, expected);
        assert.equal((await client.list({})).statuses[service]?.status, expected);
      }
    }
    assert.equal((await rpcFailure(client.check({ service: "nope" }))).code, "NotFound");
  }
});

test("watch reports the current status, each change, and an unknown name", async (t) => {
  let isReady = true;
  const { url } = await serveRpc(t, { ready: () => isReady });
  const client = createClient(Health, transports(url).gRPC);
  const seen: Status[] = [];
  for await (const { status } of client.watch({ service: "chorus.v1.GenerationService" })) {
    seen.push(status);
    isReady = !isReady;
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, [Status.SERVING, Status.NOT_SERVING, Status.SERVING]);
  for await (const { status } of client.watch({ service: "nope" })) {
    assert.equal(status, Status.SERVICE_UNKNOWN);
    break;
  }
});
