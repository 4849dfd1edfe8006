import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Report } from "../report.ts";
import { toConnectError } from "./connect-error.ts";
import { REQUEST } from "./request.ts";

/** Reports each request once, and turns errors into what the caller reads. */
export interface Reporting {
  /** Runs a unary method. @throws ConnectError */
  unary<T>(context: HandlerContext, run: () => Promise<T>): Promise<T>;
  /** Reports a request that has ended. @param error what ended it, if anything */
  end(context: HandlerContext, error: unknown): void;
  connectError(error: unknown, context: HandlerContext): ConnectError;
}

export function createReporting(report: Report): Reporting {
  const end = ({ values }: HandlerContext, error: unknown) => report(values.get(REQUEST), error);
  const connectError = (error: unknown, { values, signal }: HandlerContext) =>
    toConnectError(error, values.get(REQUEST).requestId, signal);
  return {
    async unary(context, run) {
      let failure: unknown;
      try {
        return await run();
      } catch (error) {
        failure = error;
        throw connectError(error, context);
      } finally {
        end(context, failure);
      }
    },
    end,
    connectError,
  };
}
