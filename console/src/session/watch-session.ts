import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { SessionClient } from "./session-client.ts";

/** Ends the session of the page when any call fails because the session has expired. */
export function watchSession(client: Pick<SessionClient<unknown>, "end">): Interceptor {
  const noticed = (error: unknown): unknown => {
    if (error instanceof ConnectError && error.code === Code.Unauthenticated) client.end();
    return error;
  };
  async function* watched<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (error) {
      throw noticed(error);
    }
  }
  return (next) => async (request) => {
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: watched(response.message) } : response;
    } catch (error) {
      throw noticed(error);
    }
  };
}
