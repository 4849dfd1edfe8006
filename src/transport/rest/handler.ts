import type { IncomingMessage, ServerResponse } from "node:http";
import type { Signal } from "../../concurrency/abort.ts";
import type { Failure } from "../../contract/failure.ts";
import type { RequestEnd } from "../../telemetry/telemetry.ts";
import type { BodyHold } from "../call/body-budget.ts";
import type { TrackedRequest } from "../call/tracked-request.ts";

/** One HTTP request and its response. */
export interface Exchange extends TrackedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Text before the `?` of the request target. */
  readonly path: string;
  /** Text after the `?` of the request target. */
  readonly query: string;
  /** Whether the caller waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  /** Aborts when the connection closes. */
  readonly closed: Signal;
  /** The failure that a stream sent as its last event. */
  streamFailure: Failure | undefined;
  /** Memory of the body, which is released at the end of the request. */
  hold: Pick<BodyHold, "release"> | undefined;
  /** Called at the end of the request. */
  leave: (() => void) | undefined;
}

/** Serves the requests of one path and HTTP method. */
export interface Handler {
  /** Name in logs and metrics. Absent for paths that are not counted: probes, documentation and the console. */
  readonly label?: RequestEnd["method"];
  /** @throws Failure, or CallerGone */
  readonly run: (exchange: Exchange) => Promise<void> | void;
}

/** Handlers by HTTP method. */
export type Verbs = ReadonlyMap<string, Handler>;
