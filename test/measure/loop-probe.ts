/**
 * Reports the longest hold of the event loop. Load it into a process with `--import`; it writes `LOOP_PROBE <port>` to
 * standard output and answers each connection with the holds since the last one, as JSON, then starts again.
 *
 * A hold is the processor time of the main thread between two turns of a timer, so other processes on the machine do
 * not count.
 */
import { createServer } from "node:net";
import { threadCpuUsage } from "node:process";
import { isMainThread } from "node:worker_threads";

export interface Holds {
  /** Longest hold, in milliseconds of processor time. */
  longest: number;
  /** Highest resident memory, in megabytes. */
  memory: number;
}

if (isMainThread) {
  let holds: Holds = { longest: 0, memory: 0 };
  let last = cpu();
  const turn = setInterval(() => {
    const now = cpu();
    holds.longest = Math.max(holds.longest, now - last);
    holds.memory = Math.max(holds.memory, process.memoryUsage.rss() / 1024 / 1024);
    last = cpu();
  }, 1);
  turn.unref();
  const server = createServer((socket) => {
    socket.on("error", () => undefined).end(JSON.stringify(holds));
    holds = { longest: 0, memory: 0 };
  });
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    if (typeof address === "object") process.stdout.write(`LOOP_PROBE ${address?.port}\n`);
  });
  server.unref();
}

/** Processor time of the main thread so far, in milliseconds. */
function cpu(): number {
  const { user, system } = threadCpuUsage();
  return (user + system) / 1000;
}
