import { setFlagsFromString } from "node:v8";

/**
 * Keeps the code that V8 has compiled, and the shapes of objects that it knows, while the process is idle. After eight
 * idle seconds, V8 collects garbage in a mode that drops both and returns free pages to the operating system. The next
 * requests then take two to five times the processor time, for some thousand requests. With this flag, V8 collects at
 * the same time in its normal mode. docs/decisions/speed.md has the figures.
 */
export function keepCode(): void {
  setFlagsFromString("--no-memory-reducer-favors-memory");
}

/**
 * Lets new objects begin in the young generation. Otherwise V8 may create those of a kind that lived long at one time
 * in the old generation. When it did so with the responses of Node's server, all that they refer to survived, too.
 * Call it before code is compiled. docs/decisions/speed.md has the figures.
 */
export function allocateYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
