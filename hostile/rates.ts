import type { Kind } from "./figures.ts";

/** Requests per second of the neighbour, the operator and the owner. */
export const RATES: Readonly<Record<Kind, number>> = {
  unary: 30,
  long: 2,
  rpc: 10,
  stream: 10,
  operator: 1,
  signIn: 1,
};
