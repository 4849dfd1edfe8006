import { Failure } from "../../failure.ts";

/** Where a request comes from, as far as a browser and the trusted proxies say. */
export interface Origin {
  /** Address of the peer, or of whoever the trusted proxies took the request from. */
  source: string;
  /** Whether it came over https. */
  secure: boolean;
}

type HeaderOf = (name: string) => string | undefined;

/**
 * Finds out where a request comes from. What a header says of that counts only as far as proxies of our own have written it.
 * @param proxies number of proxies in front of the service; 0: no such header is believed
 * @param peer address of the connection
 */
export function originOf(header: HeaderOf, proxies: number, peer: string): Origin {
  const nth = (name: string) => header(name)?.split(",").at(-proxies)?.trim();
  if (proxies === 0) return { source: networkOf(peer), secure: false };
  return { source: networkOf(nth("x-forwarded-for") || peer), secure: nth("x-forwarded-proto") === "https" };
}

/**
 * Lets a request through that a page of this very address has sent, by what browsers say and no page can change: `Origin`, and
 * `Sec-Fetch-Site` where the browser sends it (over https, and to this machine).
 * @param proxies as above: what they say of the host counts in place of `Host`
 * @throws Failure foreign_origin
 */
export function requireSameOrigin(header: HeaderOf, proxies: number): void {
  const forwarded = proxies > 0 ? header("x-forwarded-host")?.split(",").at(-proxies)?.trim() : undefined;
  const host = (forwarded || header("host"))?.toLowerCase();
  const origin = header("origin") ?? "";
  const isOwn =
    URL.canParse(origin) && host !== undefined && hostOf(origin) === hostOf(`${new URL(origin).protocol}//${host}`);
  if (!isOwn || (header("sec-fetch-site") ?? "same-origin") !== "same-origin") throw new Failure("foreign_origin");
}

/** Host and port, the scheme's own port left out. */
function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

/** An address, of IPv6 the first 64 bits, which one customer has for itself (RFC 6177). */
function networkOf(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!URL.canParse(`http://[${bare}]`)) return bare.slice(0, 64);
  // Written in the one way that there is, then with its zeroes.
  const [left = "", right] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split("::");
  const groups = left === "" ? [] : left.split(":");
  if (right !== undefined) {
    const tail = right === "" ? [] : right.split(":");
    while (groups.length + tail.length < 8) groups.push("0");
    groups.push(...tail);
  }
  return `${groups.slice(0, 4).join(":")}::`;
}
