import { overloaded, type Pool } from "./pool.ts";

/** Creates a pool that refuses every statement with `overloaded` until it is opened. */
export function createGate() {
  let inner: Pool | undefined;
  const opened = (): Pool => {
    if (!inner) throw overloaded(new Error("the service is still starting"));
    return inner;
  };
  return {
    pool: {
      query: async (text, values) => opened().query(text, values),
      tx: async (run, options) => opened().tx(run, options),
      end: async () => inner?.end(),
    } satisfies Pool as Pool,
    /** Sends all further statements to `pool`. */
    open(pool: Pool): void {
      inner = pool;
    },
  };
}
