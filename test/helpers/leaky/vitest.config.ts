import { defineConfig } from "vitest/config";
import { common } from "../../../vitest.config.ts";

/** For the test of the leak check. */
export default defineConfig({ test: { ...common, include: ["test/helpers/leaky/leaky.ts"] } });
