import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../../gen/health/v1/health_pb.js";

/** How often a watch looks for a change, in milliseconds. */
const WATCH_MS = 250;

/** Serves `grpc.health.v1` for the whole process (the empty name) and for the given services, which are ready together. */
export function addHealth(router: ConnectRouter, services: readonly DescService[], ready: () => boolean): void {
  const names = ["", ...services.map(({ typeName }) => typeName)];
  const now = () => (ready() ? Status.SERVING : Status.NOT_SERVING);
  router.service(Health, {
    check({ service }) {
      if (!names.includes(service)) throw new ConnectError("There is no such service.", Code.NotFound);
      return { status: now() };
    },
    list: () => ({ statuses: Object.fromEntries(names.map((name) => [name, { status: now() }])) }),
    async *watch({ service }, { signal }) {
      let last: Status | undefined;
      while (!signal.aborted) {
        // The protocol wants a watch of an unknown name to go on: it may become known.
        const status = names.includes(service) ? now() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
      }
    },
  });
}
