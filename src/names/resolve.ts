import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";

/** Finds the addresses of a host name: at least one. Rejects with an error that has a `code`. */
export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

/** A function for the option `lookup` of connections. */
export function lookupWith(resolve: Resolve): LookupFunction {
  return (host, { all, family }, callback) => {
    const wanted = family === 4 || family === "IPv4" ? 4 : family === 6 || family === "IPv6" ? 6 : undefined;
    resolve(host).then(
      (addresses) => {
        const found = addresses.filter((one) => wanted === undefined || one.family === wanted);
        const [first] = found;
        if (!first) callback(nameError("ENOTFOUND", host), "");
        else if (all) callback(null, found);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, ""),
    );
  };
}

/** An error as `dns.lookup` gives it. @param code such as `ENOTFOUND` */
export function nameError(code: string, host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code} ${host}`), { code });
}
