import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// The processes of the test files keep the modules that Node has compiled, as the processes that the tests start do.
process.env.NODE_COMPILE_CACHE ??= resolve(import.meta.dirname, "node_modules/.cache/node");

/** Settings of every run. */
export const common = {
  root: import.meta.dirname,
  globalSetup: "test/helpers/setup.ts",
  setupFiles: "test/helpers/leak-check.ts",
  pool: "forks" as const,
  // Files share the processes of the pool: loading the sources again for each file takes 0.4 s of processor time. The
  // leak check fails a file that leaves anything open for the next one.
  isolate: false,
  // Node runs the sources without a transform, as in production.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // Bounds for a test that hangs; a busy machine may be slow.
  testTimeout: 120_000,
  hookTimeout: 120_000,
};

/** The files that take longest, because they wait for intervals of the service, or start many processes. */
const LONG = [
  ...["readiness", "main", "admission/epochs", "packages", "workers/workers", "console/photos", "console/pages"],
  ...["alerts/alerts", "store/embedded/embedded", "cli/admin", "console/session", "console/playground", "reload"],
  ...["operators-day", "start", "guides", "console/keyboard", "console/operator", "service/request-context"],
  ...["cli/operators", "cli/profile", "cli/calibrate", "admission/reference-model", "store/query-plans", "readme"],
].map((name) => resolve(import.meta.dirname, `test/${name}.test.ts`));

/** Starts the longest files first, also in a fresh clone, so that none of them runs alone at the end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const places = new Map(LONG.map((file, place) => [file, place]));
    const place = ({ moduleId }: TestSpecification) => places.get(moduleId) ?? LONG.length;
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    ...common,
    sequence: { sequencer: LongFirst },
    projects: [
      {
        extends: true,
        test: { name: "tests", include: ["test/**/*.test.ts"], maxWorkers: 4, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        // One file at a time, when the tests are done: memory and start-up times are compared with bounds.
        test: {
          name: "measure",
          include: ["test/measure/*.measure.ts"],
          maxWorkers: 1,
          isolate: true,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
