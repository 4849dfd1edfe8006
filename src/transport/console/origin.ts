import { Failure } from "../../contract/failure.ts";

/** Where a request comes from, according to the connection, the browser and the trusted proxies. */
export interface Origin {
  /** Address of the peer, or of the client that the trusted proxies name. Of IPv6 addresses only the network. */
  source: string;
  /** Whether the request came over https. */
  secure: boolean;
}

type HeaderOf = (name: string) => string | undefined;

/**
 * Finds out where a request comes from. It uses only the part of a forwarding header that trusted proxies have written.
 * @param proxies number of trusted proxies in front of the service; 0 ignores forwarding headers
 * @param peer address of the connection
 */
export function originOf(header: HeaderOf, proxies: number, peer: string): Origin {
  const nth = (name: string) => header(name)?.split(",").at(-proxies)?.trim();
  if (proxies === 0) return { source: networkOf(peer), secure: false };
  return { source: networkOf(nth("x-forwarded-for") || peer), secure: nth("x-forwarded-proto") === "https" };
}

/**
 * The address at which a browser reaches the service, such as `https://chorus.example.com`.
 * @param proxies as above; with trusted proxies `X-Forwarded-Host` replaces `Host`
 * @throws Failure malformed_request without a valid host
 */
export function addressOf(header: HeaderOf, proxies: number, secure: boolean): URL {
  const address = `${secure ? "https" : "http"}://${hostHeader(header, proxies) ?? ""}`;
  if (!URL.canParse(address)) throw new Failure("malformed_request");
  return new URL(address);
}

/**
 * Accepts only requests from pages of the service's own address. It checks `Origin`, and `Sec-Fetch-Site` where the
 * browser sends it (over https, and to localhost); pages cannot set either.
 * @param proxies as above; with trusted proxies `X-Forwarded-Host` replaces `Host`
 * @throws Failure foreign_origin
 */
export function requireSameOrigin(header: HeaderOf, proxies: number): void {
  const host = hostHeader(header, proxies);
  const origin = header("origin") ?? "";
  const isOwn =
    URL.canParse(origin) && host !== undefined && hostOf(origin) === hostOf(`${new URL(origin).protocol}//${host}`);
  if (!isOwn || (header("sec-fetch-site") ?? "same-origin") !== "same-origin") throw new Failure("foreign_origin");
}

function hostHeader(header: HeaderOf, proxies: number): string | undefined {
  const forwarded = proxies > 0 ? header("x-forwarded-host")?.split(",").at(-proxies)?.trim() : undefined;
  return (forwarded || header("host"))?.toLowerCase();
}

/** Host and port of a URL, without the scheme's default port. */
function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

/**
 * An IPv4 address, or the first 64 bits of an IPv6 address, which belong to one customer (RFC 6177).
 * @param address also with a port, as some proxies write it: `192.0.2.7:5678`, `[2001:db8::1]:443`
 */
function networkOf(address: string): string {
  const [, v6, v4] = /^(?:\[([^\]]*)\]|(\d+\.[\d.]+))(?::\d+)?$/.exec(address) ?? [];
  const bare = (v6 ?? v4 ?? address).replace(/^::ffff:(?=\d+\.)/i, "");
  if (!URL.canParse(`http://[${bare}]`)) return bare.slice(0, 64);
  // URL writes the address in its canonical form; the loop restores the zeroes that this form leaves out.
  const [left = "", right] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split("::");
  const groups = left === "" ? [] : left.split(":");
  if (right !== undefined) {
    const tail = right === "" ? [] : right.split(":");
    while (groups.length + tail.length < 8) groups.push("0");
    groups.push(...tail);
  }
  return `${groups.slice(0, 4).join(":")}::`;
}
