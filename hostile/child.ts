import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A process of the suite that answers each message with one message. */
export interface Child extends AsyncDisposable {
  /** Sends a message and waits for the answer. @throws Error if the process has ended */
  ask<T>(message: string): Promise<T>;
}

/**
 * Starts a script of this folder.
 * @param input what the script reads with `input()`
 * @param launcher a command that runs the command after it in its own process
 */
export function startChild(script: string, input: object = {}, launcher: readonly string[] = []): Child {
  const [execPath = "", ...execArgv] = [...launcher, process.execPath, "--disable-warning=ExperimentalWarning"];
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), [JSON.stringify(input)], {
    execPath,
    execArgv,
    // JSON, the default, has no NaN.
    serialization: "advanced",
  });
  return {
    async ask<T>(message: string): Promise<T> {
      const ended = new AbortController();
      const exited = once(child, "exit", { signal: ended.signal }).then(() => {
        throw new Error(`${script} ended while it was asked for "${message}".`);
      });
      exited.catch(() => undefined);
      try {
        const answer = once(child, "message", { signal: ended.signal });
        answer.catch(() => undefined);
        child.send(message);
        return ((await Promise.race([answer, exited])) as [T])[0];
      } finally {
        ended.abort();
      }
    },
    [Symbol.asyncDispose]: () => kill(child),
  };
}

/** The input of this process. */
export function input<T>(): T {
  return JSON.parse(process.argv[2] ?? "{}");
}

/** Answers the messages of the process that started this one. */
export function answer(handlers: Readonly<Record<string, () => unknown>>): void {
  process.on("message", async (message: string) => {
    process.send?.((await handlers[message]?.()) ?? null);
  });
  process.on("disconnect", () => process.exit());
  // A terminal's Ctrl-C reaches all processes; the one that started this one ends it.
  process.on("SIGINT", () => undefined);
}

/** SIGKILL, because an attacker does not say goodbye. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
