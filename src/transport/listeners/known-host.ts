import { isIP } from "node:net";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import type { Call } from "../call/call.ts";

/** Last labels of names that nobody can register in public DNS. */
const PRIVATE: ReadonlySet<string> = new Set(["localhost", "local", "internal", "svc"]);

/** A name of at least two labels, in ASCII as browsers send it. */
const NAME = /^[\w-]+(\.[\w-]+)+\.?$/;

/**
 * Refuses requests that a page of another site can make. Such a page may reach the internal listener under its own
 * name (DNS rebinding) or with its `Origin`, and could read `/metrics`, which needs no key. On a loopback address the
 * name is checked for every request. On other addresses it is checked for `/metrics` and for requests of browsers,
 * because programs use names there that the service does not know.
 * @returns a function that throws Failure foreign_origin
 */
export function requireKnownHost(rpc: Config["rpc"]): (call: Pick<Call, "request" | "path">) => void {
  const isLocal = /^(localhost|127\.[\d.]+|::1)$/.test(rpc.host);
  const isForeign = foreignNames([rpc.host, ...rpc.names]);
  return (call) => {
    if (isAllowed(call, isLocal, isForeign)) return;
    const message =
      "This listener does not know the name in the header Host or Origin. If it is a name of this service, add it to " +
      "RPC_NAMES.";
    throw new Failure("foreign_origin", { message });
  };
}

function isAllowed(
  { request: { headers }, path }: Pick<Call, "request" | "path">,
  isLocal: boolean,
  isForeign: (name: string) => boolean,
): boolean {
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  if (site === "cross-site" || (origin !== undefined && (!URL.canParse(origin) || isForeign(new URL(origin).host))))
    return false;
  const isBrowser = origin !== undefined || site !== undefined;
  if (!isLocal && !isBrowser && path !== "/metrics") return true;
  return !isForeign(headers[":authority"]?.toString() ?? host ?? "");
}

/**
 * Creates a function that tells whether a name with an optional port may belong to another site: a name of public DNS
 * that is not in `known`. An entry with a leading dot stands for every name below.
 */
function foreignNames(known: readonly string[]): (authority: string) => boolean {
  const names = new Set(known.map((name) => name.toLowerCase()));
  return (authority) => {
    const name = authority.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    if (!NAME.test(name) || isIP(name) !== 0 || names.has(name)) return false;
    const labels = name.split(".");
    if (PRIVATE.has(labels.at(-1) ?? "")) return false;
    return !labels.some((_, i) => names.has(`.${labels.slice(i + 1).join(".")}`));
  };
}
