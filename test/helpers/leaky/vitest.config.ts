import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import base from "../../../vitest.config.ts";

/** For the test of the leak check. */
export default defineConfig({
  test: { ...base.test, root: resolve(import.meta.dirname, "../../.."), include: ["test/helpers/leaky/leaky.ts"] },
});
