import { resolve } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Command } from "commander";
import { operatorTokenFile, readDiscovery } from "../discovery.ts";

/** Something that the person at the terminal can put right; the message says how. */
export class CliError extends Error {
  override name = "CliError";
}

export interface GlobalOptions {
  rpcUrl?: string;
  json?: boolean;
}

export interface Secret {
  text: string;
  /** Where it is from, in words. */
  source: string;
}

/** Whether the command is to print JSON. */
export function json(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json ?? false;
}

/** A client of the service that the options, the environment or DATA_DIR point at, with the token of an operator or owner. */
export async function operatorClient<S extends DescService>(service: S, command: Command): Promise<Client<S>> {
  const file = operatorTokenFile(dataDir());
  const variable = process.env.OPERATOR_TOKEN ? "OPERATOR_TOKEN" : "OWNER_TOKEN";
  const given = process.env[variable];
  const text = given || (await readDiscovery(dataDir())).operatorToken;
  if (!text) {
    throw new CliError(
      `No operator token. Set OPERATOR_TOKEN (or, as an owner, OWNER_TOKEN), or run this where the service keeps its data (${file} was looked for; DATA_DIR names the folder).`,
    );
  }
  const secret = { text, source: given ? variable : file };
  return client(service, await rpcUrl(command), secret, (request) => {
    request.set("authorization", `Bearer ${text}`);
  });
}

/** A client that calls with an API key. */
export async function callerClient<S extends DescService>(
  service: S,
  command: Command,
  apiKey: Secret,
): Promise<Client<S>> {
  return client(service, await rpcUrl(command), apiKey, (request) => request.set("x-api-key", apiKey.text));
}

function dataDir(): string {
  return resolve(process.env.DATA_DIR || ".chorus");
}

async function rpcUrl(command: Command): Promise<string> {
  const given = command.optsWithGlobals<GlobalOptions>().rpcUrl || process.env.CHORUS_RPC_URL;
  const url = given || (await readDiscovery(dataDir())).rpcUrl || "http://127.0.0.1:8081";
  if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
    throw new CliError(`The address of the service must be like http://127.0.0.1:8081, but is "${url}".`);
  }
  return url;
}

function client<S extends DescService>(
  service: S,
  baseUrl: string,
  secret: Secret,
  authorize: (headers: Headers) => void,
): Client<S> {
  if (!/^[\x21-\x7e]+$/.test(secret.text)) throw new CliError(`${secret.source} holds characters that no secret has.`);
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

/** Says what to do where the service's own words, which it attaches a FailureDetail to, are not the whole story. */
function explained(error: ConnectError, baseUrl: string, secret: Secret): Error {
  if (error.code === Code.Unauthenticated) {
    return new CliError(`The service at ${baseUrl} does not accept the secret of ${secret.source}.`);
  }
  if (error.details.length > 0 || error.code === Code.Canceled) return error;
  if (error.code === Code.Unavailable) {
    return new CliError(
      `There is no service at ${baseUrl}. Start one (npm start), or name its address with CHORUS_RPC_URL.`,
    );
  }
  return new CliError(
    `What answers at ${baseUrl} is not the internal listener of this service (${error.rawMessage.trim()}). Name its address with CHORUS_RPC_URL.`,
  );
}
