/**
 * A process that runs services for tests, several one after the other or at once: a service takes 0.2 s of processor
 * time from start to end, and 0.95 s in a process of its own. Each service has its own environment, output and signals.
 * The parameter is the module with `runReplica`. Prints the address at which it takes orders. Is told how many services
 * it has to start when no more will come, and ends when it has answered the order to end of each.
 */
import { EventEmitter, once } from "node:events";
import { closeSync, openSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Ended, Order } from "./hosts.ts";

const { runReplica } = (await import(process.argv[2] ?? "")) as typeof import("../../src/process/replica.ts");

interface Hosted {
  readonly host: EventEmitter;
  readonly ended: Promise<Ended>;
}

const services = new Map<string, Hosted>();
let answered = 0;
let expected = Number.POSITIVE_INFINITY;

/** Starts a service that writes to the file `output`. Resolves when it is ready or has ended. */
async function start(output: string, env: Record<string, string>): Promise<string> {
  const fd = openSync(output, "a");
  const ready = Promise.withResolvers<void>();
  const exit = Promise.withResolvers<number>();
  const write = (chunk: string) => {
    writeSync(fd, chunk);
    if (chunk.includes("Try it:")) ready.resolve();
    return true;
  };
  const host = Object.assign(new EventEmitter(), {
    env,
    ppid: process.ppid,
    pid: process.pid,
    stdout: { write, once: () => undefined },
    stderr: { fd, write },
    exit: (code: number) => exit.resolve(code),
  });
  const code = Promise.race([runReplica(host as unknown as NodeJS.Process), exit.promise]);
  const ended = code.then((code): Ended => {
    host.emit("exit", code);
    closeSync(fd);
    return { code };
  });
  services.set(output, { host, ended });
  return JSON.stringify(await Promise.race([ready.promise.then(() => ({ code: null })), ended]));
}

function endIfDone(): void {
  if (answered === expected) process.exit();
}

process.on("unhandledRejection", (reason) => {
  for (const { host } of services.values()) host.emit("unhandledRejection", reason);
});

const server = createServer(async (request, response) => {
  const { order, output, env = {}, signal = "SIGTERM" } = JSON.parse(await text(request)) as Order;
  const service = services.get(output);
  try {
    if (order === "start") response.end(await start(output, env));
    else if (order === "signal") {
      service?.host.emit(signal, signal);
      response.end();
    } else {
      response.end(JSON.stringify(await service?.ended), () => {
        answered += 1;
        endIfDone();
      });
      services.delete(output);
    }
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
process.on("message", (started: number) => {
  expected = started;
  endIfDone();
});
// Ends with the process of the tests.
process.on("disconnect", () => process.exit());
