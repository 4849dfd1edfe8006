/**
 * Stands for "vitest" in the process that runs the tests against each mutant: registers the tests of the imported
 * files, so that they run again and again without a new process.
 */

/** What a test does, with the cleanup functions that it registers. */
type Body = (t: { onTestFinished(undo: () => unknown): void }) => unknown;

export interface RegisteredTest {
  name: string;
  run(): Promise<void>;
}

export const registered: RegisteredTest[] = [];

export function test(name: string, body: Body): void {
  registered.push({ name, run: () => runTest(body) });
}

async function runTest(body: Body): Promise<void> {
  const undo: (() => unknown)[] = [];
  try {
    await body({ onTestFinished: (one) => undo.push(one) });
  } finally {
    for (const one of undo.reverse()) await one();
  }
}

/** The tests of a group that may run at the same time are one test here. */
export const describe = {
  concurrent(name: string, body: () => void): void {
    const first = registered.length;
    body();
    const tests = registered.splice(first);
    registered.push({ name, run: async () => void (await Promise.all(tests.map((one) => one.run()))) });
  },
};
