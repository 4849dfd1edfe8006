import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import { MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
import { addUse, NOW, openWithGenerations } from "../../helpers/generations.ts";

const at = (ms: number) => timestampFromDate(new Date(ms));

test("finds the keys that used most credit, with their figures, from the rollups", async (t) => {
  const { pool, usage } = await openWithGenerations(t, 1);
  await addUse(pool);
  const month = { workspace: "one", startTime: at(NOW - 30 * 86_400_000), endTime: at(NOW) };
  const top = await usage.listTopKeys(month);
  assert.deepEqual(
    top.keys.map(({ keyId, keyName, totals }) => [keyId, keyName, totals?.credits, totals?.requests]),
    [
      ["key_1", "name 1", 12, 6n],
      ["key_3", "name 3", 9, 2n],
    ],
  );
  assert.equal((await usage.listTopKeys({ ...month, pageSize: 1 })).keys.length, 1);
  await assert.rejects(usage.listTopKeys({ ...month, pageSize: 101 }), { kind: "invalid_request", field: "page_size" });
  const own = await usage.getUsage({ ...month, interval: MetricsInterval.DAY, keyId: "key_3" });
  assert.equal(own.usage?.totals?.credits, 9);
  assert.equal(own.usage.series.length, 1);
});
