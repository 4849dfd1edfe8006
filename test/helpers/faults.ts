import { existsSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { Span, Tracer } from "@opentelemetry/api";
import { Counter, Histogram } from "prom-client";
import { LogOutput } from "../../src/telemetry/log-output.ts";
import { CHILD_ENV } from "./environment.ts";
import { otelApi } from "./otel-api.ts";
import { FROM_SOURCES } from "./program.ts";

/**
 * Breaks parts of a service that must not affect its requests. A test loads this file into the service's process with
 * `--import` and names the parts in `CHORUS_TEST_FAULTS`.
 */
const { trace } = otelApi;
const faults = new Set(process.env.CHORUS_TEST_FAULTS?.split(","));

/** The environment of a service with these faults. */
export function faultEnv(...names: string[]): Record<string, string> {
  return {
    NODE_OPTIONS: `${CHILD_ENV.NODE_OPTIONS} --import=${import.meta.url}`,
    CHORUS_TEST_FAULTS: names.join(),
    ...FROM_SOURCES,
  };
}

function isOwn(metric: object): boolean {
  const { name } = metric as { name: string };
  return /^chorus_(?!internal_errors)/.test(name);
}

/** Breaks the method that each metric of a class copies from its prototype. */
function breakMetrics(prototype: object, name: string): void {
  const method: unknown = Reflect.get(prototype, name);
  if (typeof method !== "function") throw new Error(`prom-client has no method ${name}.`);
  Reflect.set(prototype, name, function (this: object, ...parameters: unknown[]) {
    if (isOwn(this)) throw new Error(`injected: ${name}`);
    return method.apply(this, parameters);
  });
}

/** Starts every second span only, and spans whose methods throw. */
class BrokenTracer implements Tracer {
  readonly #tracer: Tracer;
  #started = 0;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  startSpan(...of: Parameters<Tracer["startSpan"]>): Span {
    if (++this.#started % 2 === 0) throw new Error("injected: startSpan");
    const fail = (): never => {
      throw new Error("injected: span");
    };
    const span = this.#tracer.startSpan(...of);
    return Object.assign(span, { setAttribute: fail, setAttributes: fail, setStatus: fail, end: fail });
  }

  startActiveSpan(): never {
    throw new Error("injected: startActiveSpan");
  }
}

if (faults.has("counter")) breakMetrics(Counter.prototype, "incWithoutExemplar");
if (faults.has("histogram")) breakMetrics(Histogram.prototype, "observeWithoutExemplar");

if (faults.has("log")) {
  const { write } = LogOutput.prototype;
  LogOutput.prototype.write = function (this: LogOutput, line) {
    if (line.includes('"request_id"')) throw new Error("injected: log");
    write.call(this, line);
  };
}

if (faults.has("report")) {
  const { round } = Math;
  Math.round = (value) => {
    if (new Error("for its stack").stack?.includes("call/report.ts")) throw new Error("injected: report");
    return round(value);
  };
}

if (faults.has("span")) {
  const { setGlobalTracerProvider } = trace;
  trace.setGlobalTracerProvider = (provider) =>
    setGlobalTracerProvider.call(trace, { getTracer: (...of) => new BrokenTracer(provider.getTracer(...of)) });
}

if (faults.has("disk")) {
  // While the file `disk-full` exists in DATA_DIR, appending to a file writes some bytes and then fails.
  const full = join(process.env.DATA_DIR ?? "", "disk-full");
  const handle = await open(process.execPath, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const { appendFile } = prototype;
  prototype.appendFile = async function (this: FileHandle, data) {
    if (!existsSync(full)) return appendFile.call(this, data);
    await appendFile.call(this, Buffer.from(data as Buffer).subarray(0, 10));
    throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
  };
}

if (faults.has("rejection")) {
  process.on("SIGUSR2", () => void Promise.reject(new TypeError("injected: rejection")));
}

if (faults.has("exception")) {
  process.on("SIGUSR2", () => {
    throw new TypeError("injected: exception");
  });
}
