import { defineConfig } from "vitest/config";
import { common, globalSetup } from "../../../vitest.config.ts";

/** Fills a workspace with a million requests, for minutes; `npm run measure:million` starts it, `npm test` does not. */
export default defineConfig({
  test: {
    ...common,
    globalSetup,
    include: ["test/measure/million/*.measure.ts"],
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 3_600_000,
  },
});
