import { resolve } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Command } from "commander";
import { operatorTokenFile, readDiscovery } from "../discovery.ts";

/** An error that the user can correct; the message says how. */
export class CliError extends Error {
  override name = "CliError";
}

interface GlobalOptions {
  rpcUrl?: string;
  json?: boolean;
}

export interface Secret {
  text: string;
  /** Where the secret comes from, for error messages. */
  source: string;
}

/** Whether `--json` is set. */
export function wantsJson(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json ?? false;
}

/**
 * A client that authenticates with the token of an operator or owner. The address comes from the options, the
 * environment or DATA_DIR.
 * @throws CliError if no token is set
 */
export async function operatorClient<S extends DescService>(service: S, command: Command): Promise<Client<S>> {
  const file = operatorTokenFile(dataDir());
  const variable = process.env.OPERATOR_TOKEN ? "OPERATOR_TOKEN" : "OWNER_TOKEN";
  const token = process.env[variable];
  const text = token || (await readDiscovery(dataDir())).operatorToken;
  if (!text) {
    throw new CliError(
      "No operator token. Set OPERATOR_TOKEN, or OWNER_TOKEN if you own a workspace. On the machine of the service, " +
        `DATA_DIR must name its data folder (${file} does not exist).`,
    );
  }
  const secret = { text, source: token ? variable : file };
  return client(service, await rpcUrl(command), secret, (headers) => headers.set("authorization", `Bearer ${text}`));
}

/** A client that authenticates with an API key. */
export async function callerClient<S extends DescService>(
  service: S,
  command: Command,
  apiKey: Secret,
): Promise<Client<S>> {
  return client(service, await rpcUrl(command), apiKey, (headers) => headers.set("x-api-key", apiKey.text));
}

/** Address of the public listener; undefined unless the service runs on this machine. */
export async function consoleUrl(command: Command): Promise<string | undefined> {
  const { rpcUrl: found, restUrl } = await readDiscovery(dataDir());
  return found === (await rpcUrl(command)) ? restUrl : undefined;
}

function dataDir(): string {
  return resolve(process.env.DATA_DIR || ".chorus");
}

async function rpcUrl(command: Command): Promise<string> {
  const configured = command.optsWithGlobals<GlobalOptions>().rpcUrl || process.env.CHORUS_RPC_URL;
  const url = configured || (await readDiscovery(dataDir())).rpcUrl || "http://127.0.0.1:8081";
  if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
    throw new CliError(
      `The address of the service (--rpc-url or CHORUS_RPC_URL) must be like http://127.0.0.1:8081, but is "${url}".`,
    );
  }
  return url;
}

function client<S extends DescService>(
  service: S,
  baseUrl: string,
  secret: Secret,
  authorize: (headers: Headers) => void,
): Client<S> {
  if (!/^[\x21-\x7e]+$/.test(secret.text))
    throw new CliError(`${secret.source} must be visible ASCII characters without spaces. Set it again.`);
  const explain = (error: unknown) => explained(ConnectError.from(error), baseUrl, secret);
  async function* explaining<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (error) {
      throw explain(error);
    }
  }
  const interceptor: Interceptor = (next) => async (request) => {
    authorize(request.header);
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: explaining(response.message) } : response;
    } catch (error) {
      throw explain(error);
    }
  };
  return createClient(service, createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [interceptor] }));
}

/** Replaces errors that do not say what to do. Errors with a FailureDetail come from the service and are kept. */
function explained(error: ConnectError, baseUrl: string, secret: Secret): Error {
  if (error.code === Code.Unauthenticated) {
    return new CliError(`The service at ${baseUrl} does not accept the secret from ${secret.source}.`);
  }
  if (error.details.length > 0 || error.code === Code.Canceled) return error;
  if (error.code === Code.Unavailable) {
    return new CliError(
      `There is no service at ${baseUrl}. Start one (npm start), or set CHORUS_RPC_URL to its address.`,
    );
  }
  return new CliError(
    `The server at ${baseUrl} is not the internal listener of Chorus (${error.rawMessage.trim()}). ` +
      "Set CHORUS_RPC_URL to the address of that listener.",
  );
}
