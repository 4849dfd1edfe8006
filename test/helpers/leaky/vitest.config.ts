import { defineConfig } from "vitest/config";
import { common } from "../../../vitest.config.ts";

/** For the test of the leak check: two files in one process, the leaky one first. */
export default defineConfig({
  test: { ...common, include: ["test/helpers/leaky/{leaky,tight}.ts"], maxWorkers: 1 },
});
