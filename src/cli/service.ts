import { resolve } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Command } from "commander";
import { localFile, readLocal } from "../local.ts";

/** Something that the person at the terminal can put right; the message says how. */
export class CliError extends Error {
  override name = "CliError";
}

export interface GlobalOptions {
  rpcUrl?: string;
  json?: boolean;
}

/** Whether the command is to print JSON. */
export function json(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json ?? false;
}

/** A client of the service that the options, the environment or DATA_DIR point at, with the token of an operator or owner. */
export async function operatorClient<S extends DescService>(service: S, command: Command): Promise<Client<S>> {
  const { dataDir, local } = await beside();
  const token = process.env.OPERATOR_TOKEN || process.env.OWNER_TOKEN || local.operatorToken;
  if (!token) {
    throw new CliError(
      `No operator token. Set OPERATOR_TOKEN (or, as an owner, OWNER_TOKEN), or run this where the service keeps its data (${localFile(dataDir)} was looked for; DATA_DIR names the folder).`,
    );
  }
  return client(service, await rpcUrl(command), { authorization: `Bearer ${token}` });
}

/** A client that calls with an API key. */
export async function callerClient<S extends DescService>(
  service: S,
  command: Command,
  apiKey: string,
): Promise<Client<S>> {
  return client(service, await rpcUrl(command), { "x-api-key": apiKey });
}

async function beside() {
  const dataDir = resolve(process.env.DATA_DIR || ".chorus");
  return { dataDir, local: await readLocal(dataDir) };
}

async function rpcUrl(command: Command): Promise<string> {
  const given = command.optsWithGlobals<GlobalOptions>().rpcUrl || process.env.CHORUS_RPC_URL;
  return given || (await beside()).local.rpcUrl || "http://127.0.0.1:8081";
}

function client<S extends DescService>(service: S, baseUrl: string, headers: Record<string, string>): Client<S> {
  const withHeaders: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
  const withPlace: Interceptor = (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      const failure = ConnectError.from(error);
      // Without a FailureDetail it was not the service that answered.
      if (failure.code === Code.Unavailable && failure.details.length === 0) {
        throw new CliError(
          `There is no service at ${baseUrl}. Start one (npm start), or name its address with CHORUS_RPC_URL.`,
        );
      }
      throw failure;
    }
  };
  return createClient(
    service,
    createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [withPlace, withHeaders] }),
  );
}
