import type { Environment } from "./environment.ts";
import { type Entry, type Rounds, type Sample, takeTurns } from "./rounds.ts";
import type { Protocol } from "./rpc-requests.ts";

/**
 * Measures RPC beside REST and SSE of the same process, and beside an echoes: "echo" is the RPC library
 * connect-node alone, "bare" is HTTP with the codecs alone.
 */
export async function measureRpc(environment: Environment, how: Rounds): Promise<Sample[]> {
  await using stack = new AsyncDisposableStack();
  const chorus = stack.use(await environment.startChorus());
  const echo = await environment.startEcho("echo");
  stack.use(echo.server);
  const bare = await environment.startEcho("bare");
  stack.use(bare.server);
  const entries = (shape: "unary" | "paced", protocols: Protocol[]): Entry[] =>
    protocols.flatMap((protocol) => [
      { name: protocol, server: chorus.server, target: chorus.rpcTarget(protocol, shape) },
      { name: `echo, ${protocol}`, server: echo.server, target: echo.rpcTarget(protocol, shape) },
      ...(shape === "unary"
        ? [{ name: `bare, ${protocol}`, server: bare.server, target: bare.rpcTarget(protocol, shape) }]
        : []),
    ]);
  const rest = { name: "REST", server: chorus.server, target: chorus.target("unary") };
  const sse = { name: "SSE", server: chorus.server, target: chorus.target("paced") };
  const unary = [rest, ...entries("unary", ["Connect HTTP/1.1", "Connect HTTP/2", "gRPC"])];
  const paced = [sse, ...entries("paced", ["Connect HTTP/2", "gRPC"])];
  return [...(await takeTurns("rpc unary", unary, how)), ...(await takeTurns("rpc paced", paced, how))];
}
