import { defineConfig } from "vitest/config";
import { common, globalSetup } from "../../vitest.config.ts";

/** Runs for minutes under faults; `npm run chaos` starts it, `npm test` does not. */
export default defineConfig({
  test: {
    ...common,
    globalSetup,
    include: ["test/chaos/*.chaos.ts"],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
