import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Command } from "commander";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import { VERSION } from "../contract/version.ts";
import { COMMANDS } from "../discovery/commands.ts";
import { type Silence, watchSilence } from "./silence.ts";
import { CliError, findTarget, type Secret } from "./target.ts";

/** The service does not accept a key or token. */
class RefusedSecret extends CliError {
  override name = "RefusedSecret";
}

/** Whether a call failed because the service does not accept the key or token. */
export function isRefusedSecret(error: unknown): boolean {
  // Connect wraps what an interceptor throws.
  return error instanceof RefusedSecret || (error instanceof Error && error.cause instanceof RefusedSecret);
}

/** A client that authenticates with the token of an operator or owner. @throws CliError if there is none */
export async function operatorClient<S extends DescService>(service: S, command: Command): Promise<Client<S>> {
  const { rpcUrl, token, withoutToken } = await findTarget(command);
  if (!token) {
    throw new CliError(
      "No operator token. Set OPERATOR_TOKEN, or OWNER_TOKEN if you own a workspace, or run chorus profile add. " +
        withoutToken,
    );
  }
  return client(service, rpcUrl, token, (headers) => headers.set("authorization", `Bearer ${token.text}`));
}

export async function callerClient<S extends DescService>(
  service: S,
  command: Command,
  apiKey: Secret,
): Promise<Client<S>> {
  const { rpcUrl } = await findTarget(command);
  return client(service, rpcUrl, apiKey, (headers) => headers.set("x-api-key", apiKey.text));
}

function client<S extends DescService>(
  service: S,
  baseUrl: string,
  secret: Secret,
  authorize: (headers: Headers) => void,
): Client<S> {
  if (!/^[\x21-\x7e]+$/.test(secret.text))
    throw new CliError(`${secret.source} must be visible ASCII characters without spaces. Set it again.`);
  const explain = (error: unknown, { signal }: Silence, hasBegun = false) =>
    signal.aborted ? silent(baseUrl) : explained(ConnectError.from(error), baseUrl, secret, hasBegun);
  async function* explaining<T>(messages: AsyncIterable<T>, silence: Silence): AsyncGenerator<T> {
    try {
      for await (const message of messages) {
        silence.heard();
        yield message;
      }
    } catch (error) {
      throw explain(error, silence, true);
    } finally {
      silence.end();
    }
  }
  const interceptor: Interceptor = (next) => async (request) => {
    authorize(request.header);
    const silence = watchSilence(baseUrl);
    try {
      const signal = AbortSignal.any([request.signal, silence.signal]);
      const response = await next({ ...request, signal });
      if (response.stream) return { ...response, message: explaining(response.message, silence) };
      silence.end();
      return response;
    } catch (error) {
      silence.end();
      throw explain(error, silence);
    }
  };
  return createClient(service, createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [interceptor] }));
}

function silent(baseUrl: string): Error {
  return new CliError(
    `The service at ${baseUrl} does not answer. See whether it is frozen, or cut off, and try again when it answers.`,
  );
}

/**
 * Replaces errors that do not say what to do. Errors with a FailureDetail come from the service and are kept.
 * @param hasBegun whether the service has begun to answer, so that an error without details is one of the connection
 */
function explained(error: ConnectError, baseUrl: string, secret: Secret, hasBegun: boolean): Error {
  if (error.code === Code.Unauthenticated) {
    return new RefusedSecret(`The service at ${baseUrl} does not accept the secret from ${secret.source}.`);
  }
  const [detail] = error.findDetails(FailureDetailSchema);
  if (error.code === Code.Unimplemented && detail?.code === "not_found") {
    return new CliError(
      `The service at ${baseUrl} does not have this command: it is of another version than this command line ` +
        `(${VERSION}), or the address has a wrong path. Use the command line of its version, or correct the address.`,
    );
  }
  if (error.details.length > 0 || error.code === Code.Canceled) return error;
  // Node reports EPIPE where the connection ends while the request is still sent.
  const isCut =
    error.code === Code.Aborted ||
    (error.cause instanceof Error && "code" in error.cause && error.cause.code === "EPIPE");
  if (hasBegun || isCut) {
    return new CliError(
      `The connection to ${baseUrl} ended before the answer was complete. See whether the service runs, and try again.`,
    );
  }
  if (error.code === Code.Unavailable) {
    return new CliError(
      `There is no service at ${baseUrl}. Start one (${COMMANDS.start}), or set CHORUS_RPC_URL to its address.`,
    );
  }
  return new CliError(
    `The server at ${baseUrl} is not the internal listener of Chorus (${error.rawMessage.trim()}). ` +
      "Set CHORUS_RPC_URL to the address of that listener.",
  );
}
