import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

/** Acts as a browser for a page of the console: keeps the cookie and sends the origin of the page. */
export interface Browser {
  /** Signs in with an owner token and keeps the cookie of the response. */
  signIn(token: string): Promise<Response>;
  fetch(path: string, init?: RequestInit & { headers?: Record<string, string> }): Promise<Response>;
  /** The generated client, as the page uses it. */
  client<S extends DescService>(service: S): Client<S>;
  /** The cookie as it is sent; empty before the sign-in. */
  cookie: string;
}

/** Opens a browser on the console at the address of the public listener. */
export function openBrowser(url: string): Browser {
  const browser: Browser = {
    cookie: "",
    async fetch(path, { headers, ...init } = {}) {
      const sent = { origin: url, "sec-fetch-site": "same-origin", cookie: browser.cookie, ...headers };
      const response = await fetch(url + path, { ...init, headers: sent });
      const [set] = response.headers.getSetCookie();
      if (set !== undefined) browser.cookie = set.split(";")[0] ?? "";
      return response;
    },
    signIn: (token) =>
      browser.fetch("/console/session", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ token }),
      }),
    client: (service) =>
      createClient(
        service,
        createConnectTransport({
          baseUrl: `${url}/console/rpc`,
          fetch: (input, init) => {
            const headers = Object.fromEntries(new Headers(init?.headers));
            return browser.fetch(String(input).slice(url.length), { ...init, headers });
          },
        }),
      ),
  };
  return browser;
}
