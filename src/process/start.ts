import cluster from "node:cluster";
import { availableParallelism } from "node:os";
import { keepCompiled } from "./compile-cache.ts";

// SIGHUP reloads the settings of a service that runs. Without a listener, it would end one that starts, and a process
// manager takes that for a stop. The start reads the settings, and looks for later changes of their files by itself.
process.on("SIGHUP", () => undefined);

// Starts the service: one process, or with CHORUS_WORKERS a process that starts several. The files are loaded as they
// are needed, so that the process that only starts others stays small.
await keepCompiled(process.env);
const given = process.env.CHORUS_WORKERS || "1";
const workers = given === "auto" ? availableParallelism() : Number(given);
if (cluster.isPrimary && workers > 1) {
  const { runWorkers } = await import("./run-workers.ts");
  process.exit(await runWorkers());
}
await import("./main.ts");
