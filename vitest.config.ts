import { globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const ROOT = import.meta.dirname;

// The processes of the test files keep the modules that Node has compiled, as the processes that the tests start do.
process.env.NODE_COMPILE_CACHE ??= resolve(ROOT, "node_modules/.cache/node");

/** Settings of every run. */
export const common = {
  root: ROOT,
  setupFiles: "test/helpers/leak-check.ts",
  pool: "forks" as const,
  // Files share the processes of the pool: loading the sources again for each file takes 0.4 s of processor time. The
  // leak check fails a file that leaves anything open for the next one.
  isolate: false,
  // Node runs the sources without a transform, as in production.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // Bounds for a test that hangs; a busy machine may be slow.
  testTimeout: 240_000,
  hookTimeout: 240_000,
};

/** Installs the packages of foreign clients, and starts Postgres when a test needs it. */
export const globalSetup = "test/helpers/setup.ts";

/** What a file loads that is not quick: processes, a database, a browser, a build, the schedules of the simulation. */
const SLOW =
  /from "(playwright-core|vite|node:child_process|node:cluster)"|\/src\/(store|process|cli)\/|"\.\/world\.ts"/;

const known = new Map<string, boolean>();

/** Whether a file of tests, or one of their files that it imports, loads what is not quick. */
function isSlow(file: string): boolean {
  const before = known.get(file);
  if (before !== undefined) return before;
  known.set(file, false);
  // Types are not loaded.
  const text = readFileSync(file, "utf8").replace(/^import type [^;]*;/gm, "");
  const imports = [...text.matchAll(/from "(\.[^"]+\.ts)"/g)].map(([, to = ""]) => resolve(dirname(file), to));
  const slow = SLOW.test(text) || imports.some((to) => to.startsWith(resolve(ROOT, "test")) && isSlow(to));
  known.set(file, slow);
  return slow;
}

const files = globSync("test/**/*.test.ts", { cwd: ROOT, exclude: (name) => name === "node_modules" }).toSorted();
const slow = files.filter((file) => isSlow(resolve(ROOT, file)));
const quick = files.filter((file) => !slow.includes(file));

/** Files that take longest, by the processor time and the waits of an idle machine. */
const LONGEST = new RegExp(
  `/test/(${[
    ...["packages", "guides", "operators-day", "readme", "process/(main|start|readiness|workers/workers)"],
    ...["measure/event-loop", "store/embedded/embedded", "console/(pages|photos|playground|session)"],
  ].join("|")})\\.`,
);

/** Starts the longest files of a group first, so that none runs alone at the end. Vitest learns them from a run. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification) =>
      2 * project.config.sequence.groupOrder + (LONGEST.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    ...common,
    sequence: { sequencer: LongestFirst },
    // Vitest starts the projects of a group in the order of their names, and in each the files that took longest first.
    projects: [
      {
        extends: true,
        test: { name: "integration", include: slow, globalSetup, maxWorkers: 4, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        // Measures by processor time and the memory of a service, on which other tests have no influence.
        test: {
          name: "measure",
          include: ["test/measure/event-loop.measure.ts"],
          globalSetup,
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: "quick", include: quick, maxWorkers: 4, sequence: { groupOrder: 0 } } },
      {
        extends: true,
        // One file at a time, when the tests are done: memory and start-up times are compared with bounds.
        test: {
          name: "measure-alone",
          include: ["test/measure/{memory,start-up,workspaces}.measure.ts"],
          globalSetup,
          maxWorkers: 1,
          isolate: true,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
