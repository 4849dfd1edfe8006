import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type pg from "pg";

/**
 * Takes the TLS parameters out of a Postgres URL and gives them the meaning they have in libpq; `pg` reads `require` as
 * `verify-full`. Source: PostgreSQL documentation, section 32.19.
 * - absent, `disable`, `allow`: no TLS.
 * - `prefer`, `require`: TLS without a check of the certificate; with `sslrootcert` the same as `verify-ca`. `prefer`
 *   does not fall back to a connection without TLS.
 * - `verify-ca`: checks the chain of the certificate.
 * - `verify-full`, `ssl=true`: checks the host name too.
 *
 * `sslrootcert` is a file, or `system` (the default of `verify-full`) for the certificate authorities that Node trusts.
 * As in libpq, each connection reads the files again.
 * @param variable names the address in errors
 * @throws Error naming the parameter that cannot be used
 */
export function tlsOf(
  url: string,
  variable = "DATABASE_URL",
): Pick<pg.PoolConfig, "connectionString" | "ssl" | "sslnegotiation"> {
  const at = url.indexOf("?");
  const parameters = new URLSearchParams(at < 0 ? "" : url.slice(at));
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) ?? undefined;
    parameters.delete(name);
    return value;
  };
  // `pg` would derive its own TLS settings from any of these in the URL, and prefer them to ours.
  const mode = modeOf(take("sslmode"), take("ssl"), variable);
  const ca = take("sslrootcert");
  const cert = take("sslcert");
  const key = take("sslkey");
  const direct = take("sslnegotiation") === "direct";
  take("uselibpqcompat");
  const base = at < 0 ? url : url.slice(0, at);
  const connectionString = parameters.size > 0 ? `${base}?${parameters}` : base;
  if (mode === "plain") return { connectionString, ssl: false };

  const ssl: ConnectionOptions = {};
  if (ca && ca !== "system") addPem(ssl, "ca", readerOf("sslrootcert", ca, variable));
  if (cert) addPem(ssl, "cert", readerOf("sslcert", cert, variable));
  if (key) addPem(ssl, "key", readerOf("sslkey", key, variable));
  if (mode === "verify-ca" && !ssl.ca) {
    throw new Error(`${variable} has sslmode=verify-ca, which needs the file sslrootcert. Add it, or use verify-full.`);
  }
  if (mode !== "verify-full" && ca !== "system") {
    if (ca) ssl.checkServerIdentity = () => undefined;
    else ssl.rejectUnauthorized = false;
  }
  return { connectionString, ssl, ...(direct ? { sslnegotiation: "direct" } : {}) };
}

function modeOf(
  sslmode: string | undefined,
  ssl: string | undefined,
  variable: string,
): "plain" | "require" | "verify-ca" | "verify-full" {
  switch (sslmode ?? (ssl === "true" || ssl === "1" ? "verify-full" : (ssl ?? "disable"))) {
    case "disable":
    case "allow":
    case "false":
    case "0":
      return "plain";
    case "prefer":
    case "require":
    case "no-verify":
      return "require";
    case "verify-ca":
      return "verify-ca";
    case "verify-full":
      return "verify-full";
    default:
      throw new Error(
        `${variable} has ${sslmode ? `sslmode=${sslmode}` : `ssl=${ssl}`}. ` +
          "Use sslmode=disable, require, verify-ca or verify-full.",
      );
  }
}

/** Adds a member whose text is read for each connection, because certificates are renewed while the service runs. */
function addPem(ssl: ConnectionOptions, member: "ca" | "cert" | "key", read: () => string): void {
  Object.defineProperty(ssl, member, { get: read, enumerable: true, configurable: true });
}

/**
 * @returns a function that reads a file; the text that it read last while the file is empty or cannot be read
 * @throws Error naming the parameter of a file that cannot be read now
 */
function readerOf(name: string, path: string, variable: string): () => string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`${variable} names ${name}=${path}, which cannot be read. Correct the path.`, { cause: error });
  }
  return () => {
    try {
      text = readFileSync(path, "utf8").trim() || text;
    } catch {
      // A program may be about to write it.
    }
    return text;
  };
}
