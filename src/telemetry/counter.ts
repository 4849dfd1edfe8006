import { Counter, type Registry } from "prom-client";

export function counter<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[] = [],
) {
  return new Counter({ name, help, labelNames, registers: [registry] });
}
