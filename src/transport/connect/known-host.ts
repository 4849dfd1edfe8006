import type { IncomingMessage, RequestListener } from "node:http";
import { isIP } from "node:net";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import { newRequestId } from "../call/request-id.ts";
import { sendReply } from "./response.ts";
import { refusal } from "./serve.ts";

/** Last labels of names that nobody can register in public DNS. */
const PRIVATE: ReadonlySet<string> = new Set(["localhost", "local", "internal", "svc"]);

/** A name of at least two labels, in ASCII as browsers send it. */
const NAME = /^[\w-]+(\.[\w-]+)+\.?$/;

/**
 * Refuses requests that a page of another site can make. Such a page may reach the internal listener under its own
 * name (DNS rebinding) or with its `Origin`, and could read `/metrics`, which needs no key. On a loopback address the
 * name is checked for every request. On other addresses it is checked for `/metrics` and for requests of browsers,
 * because programs use names there that the service does not know.
 */
export function requireKnownHost(
  { rpc, stream: { stallMs } }: Pick<Config, "rpc" | "stream">,
  next: RequestListener,
): RequestListener {
  const isLocal = /^(localhost|127\.[\d.]+|::1)$/.test(rpc.host);
  const isForeign = foreignNames([rpc.host, ...rpc.names]);
  return (request, response) => {
    if (isAllowed(request, isLocal, isForeign)) return next(request, response);
    const requestId = newRequestId();
    const message =
      "This listener does not know the name in the header Host or Origin. If it is a name of this service, add it to " +
      "RPC_NAMES.";
    const reply = refusal(new Failure("foreign_origin", { message }), request, { grpc: true }, requestId);
    const { signal } = new AbortController();
    sendReply({ request, response, requestId, signal, stallMs }, reply).catch(() => response.destroy());
  };
}

function isAllowed({ headers, url }: IncomingMessage, isLocal: boolean, isForeign: (name: string) => boolean): boolean {
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  if (site === "cross-site" || (origin !== undefined && (!URL.canParse(origin) || isForeign(new URL(origin).host))))
    return false;
  const isBrowser = origin !== undefined || site !== undefined;
  if (!isLocal && !isBrowser && url?.split("?", 1)[0] !== "/metrics") return true;
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
