import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

/** Acts as a browser for a page of the console: keeps the cookie and sends the origin of the page. */
export interface Browser {
  /** Signs in with a token and keeps the cookie of the response. */
  signIn(token: string): Promise<Response>;
  fetch(path: string, init?: RequestInit & { headers?: Record<string, string> }): Promise<Response>;
  /** The generated client, as the page uses it. */
  client<S extends DescService>(service: S): Client<S>;
  /** Address of the public listener. */
  readonly url: string;
  /** The cookie as it is sent; empty before the sign-in. */
  cookie: string;
}

/**
 * Opens a browser on the console at the address of the public listener.
 * @param side path of the console's side: for owners, or `/console/operator`
 */
export function openBrowser(url: string, side = "/console"): Browser {
  const browser: Browser = {
    url,
    cookie: "",
    async fetch(path, { headers, ...init } = {}) {
      const sent = { origin: url, "sec-fetch-site": "same-origin", cookie: browser.cookie, ...headers };
      const response = await fetch(url + path, { ...init, headers: sent });
      const [set] = response.headers.getSetCookie();
      if (set !== undefined) browser.cookie = set.split(";")[0] ?? "";
      return response;
    },
    signIn: (token) =>
      browser.fetch(`${side}/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ token }),
      }),
    client: (service) =>
      createClient(
        service,
        createConnectTransport({
          baseUrl: `${url}${side}/rpc`,
          fetch: (input, init) => {
            const headers = Object.fromEntries(new Headers(init?.headers));
            return browser.fetch(String(input).slice(url.length), { ...init, headers });
          },
        }),
      ),
  };
  return browser;
}
