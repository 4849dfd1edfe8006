import { createRequire } from "node:module";
import type * as Undici from "undici";

export type Agent = Undici.Agent;
export type Pool = Undici.Pool;
export type PoolOptions = Undici.Pool.Options;
type Send = (this: Agent, options: Undici.Dispatcher.RequestOptions) => Promise<Undici.Dispatcher.ResponseData>;

/**
 * The parts of undici that the service uses, for connections whose names are resolved here. The whole of it has caches,
 * mocks and proxies, too, which take 85 ms to load.
 */
export const Agent: typeof Undici.Agent = createRequire(import.meta.url)("undici/lib/dispatcher/agent.js");
export const Pool: typeof Undici.Pool = createRequire(import.meta.url)("undici/lib/dispatcher/pool.js");
const send: Send = createRequire(import.meta.url)("undici/lib/api/api-request.js");

/** Sends a request. It rejects as `Agent.request` of the whole library does. */
export function request(
  agent: Agent,
  options: Undici.Dispatcher.RequestOptions,
): Promise<Undici.Dispatcher.ResponseData> {
  return send.call(agent, options);
}
