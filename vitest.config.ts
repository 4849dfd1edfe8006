import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

// The processes of the test files keep the modules that Node has compiled, as the processes that the tests start do.
process.env.NODE_COMPILE_CACHE ??= resolve(import.meta.dirname, "node_modules/.cache/node");

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/helpers/setup.ts",
    setupFiles: "test/helpers/leak-check.ts",
    pool: "forks",
    maxWorkers: 4,
    // Node runs the sources as they are, as in production.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Bounds for what hangs; a busy machine may be slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
