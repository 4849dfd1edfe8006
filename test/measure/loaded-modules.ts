import { writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { CHILD_ENV } from "../helpers/environment.ts";
import { FROM_SOURCES } from "../helpers/program.ts";

/** The file in DATA_DIR with the addresses of the modules that a service has loaded, one a line. */
export const LOADED = "loaded-modules";

/** Environment of a service that loads this file first, and writes `LOADED` when it ends. */
export const RECORDING = { ...FROM_SOURCES, NODE_OPTIONS: `${CHILD_ENV.NODE_OPTIONS} --import=${import.meta.url}` };

const { DATA_DIR, NODE_OPTIONS } = process.env;
if (isMainThread && DATA_DIR && NODE_OPTIONS === RECORDING.NODE_OPTIONS) {
  const loaded: string[] = [];
  registerHooks({
    load(url, context, next) {
      loaded.push(url);
      return next(url, context);
    },
  });
  process.on("exit", () => writeFileSync(join(DATA_DIR, LOADED), loaded.join("\n")));
}
