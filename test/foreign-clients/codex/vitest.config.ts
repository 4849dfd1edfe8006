import { defineConfig } from "vitest/config";
import { common, globalSetup } from "../../../vitest.config.ts";

/** The packages of Codex have 400 MB; `npm run codex` starts it, `npm test` does not. */
export default defineConfig({ test: { ...common, globalSetup, include: ["test/foreign-clients/codex/*.client.ts"] } });
