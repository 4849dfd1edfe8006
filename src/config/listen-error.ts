import { ConfigError } from "./config-error.ts";

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EACCES: "this user may not use that port",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "the host name is unknown",
};

/** Explains why a server cannot listen. @param names variables that set the address, such as "HOST and PORT" */
export function listenError(
  names: string,
  { host, port }: { host: string; port: number },
  cause: NodeJS.ErrnoException,
): ConfigError {
  const reason = REASONS[cause.code ?? ""] ?? cause.message;
  return new ConfigError(`${host}:${port} cannot be used: ${reason}. Set ${names} to another address.`, { cause });
}
