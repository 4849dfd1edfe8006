import { setTimeout as sleep } from "node:timers/promises";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../../gen/health/v1/health_pb.js";

/** Interval at which a watch checks the status, in milliseconds. */
const WATCH_MS = 250;

/** Adds `grpc.health.v1` for the process (the empty name) and the given services, which share one status. */
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
        // The protocol requires that a watch of an unknown name continues, because the name may become known.
        const status = names.includes(service) ? now() : Status.SERVICE_UNKNOWN;
        if (status !== last) yield { status };
        last = status;
        await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
      }
      // A return would end the call with OK when the caller's deadline passes.
      throw signal.reason;
    },
  });
}
