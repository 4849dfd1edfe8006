import { createHmac } from "node:crypto";
import { isIP } from "node:net";
import { invalid } from "../contract/failure.ts";
import { lookupWith, nameError, type Resolve } from "../names/resolve.ts";
import { Agent, request } from "../names/undici.ts";
import { isPublicAddress } from "./public-address.ts";
import type { Sender } from "./sender.ts";
import { slackMessage } from "./sentence.ts";

/** Longest time of an attempt, in milliseconds. */
const TIMEOUT_MS = 10_000;
const MAX_URL = 2_000;

export interface WebhookOptions {
  /** Names in lower case that may be private, or use HTTP without TLS; a leading dot stands for all names below. */
  hosts: readonly string[];
  /** Resolves the names of `hosts` that are written out. */
  own: Resolve;
  /** Resolves all other names, which others have chosen. */
  foreign: Resolve;
}

/**
 * Creates the sender of webhooks. An address is checked when it is set, and again for each connection after its name
 * was resolved, so a name that later leads to a private network does not work either. Redirects are not followed, and
 * answers are not read. The caller bounds the number of attempts at a time.
 */
export function createWebhooks({ hosts, own, foreign }: WebhookOptions): Sender {
  const isTrusted = (host: string) => hosts.some((one) => (one.startsWith(".") ? host.endsWith(one) : host === one));
  const resolve = checked(isTrusted, (host) => (hosts.includes(host) ? own(host) : foreign(host)));
  const agent = new Agent({
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: 4_000,
    connect: { timeout: TIMEOUT_MS, lookup: lookupWith(resolve) },
  });

  let isClosed = false;

  function problemOf(text: string): string | undefined {
    const url = text.length <= MAX_URL ? URL.parse(text) : null;
    if (!url) return `an address such as https://example.com/hook, of up to ${MAX_URL} characters`;
    if (url.username || url.password || url.hash) return "an address without a user name, a password and a # part";
    const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
    if (isTrusted(host)) return /^https?:$/.test(url.protocol) ? undefined : "an address of HTTP";
    const otherwise = "unless an operator allows its host with CHORUS_WEBHOOK_HOSTS";
    if (url.protocol !== "https:") return `an address with https, ${otherwise}`;
    if (isIP(host) !== 0 && !isPublicAddress(host)) return `a public address, ${otherwise}`;
    return undefined;
  }

  return {
    checkUrl(field, url) {
      const problem = problemOf(url);
      if (problem) throw invalid(field, `${field} must be ${problem}.`);
    },
    async send({ id, url, secret, body: event, format }) {
      // The hosts that are trusted may have changed since the address was set.
      const problem = problemOf(url);
      if (problem) return { error: `The webhook must be ${problem}.` };
      const { origin, pathname, search } = new URL(url);
      const body = format === "slack" ? slackMessage(event) : event;
      try {
        const { statusCode: status, body: answer } = await request(agent, {
          origin,
          path: pathname + search,
          method: "POST",
          headers: { "content-type": "application/json", "user-agent": "chorus", ...signature(id, secret, body) },
          body,
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        answer.on("error", () => {}).destroy();
        return status >= 200 && status < 300 ? { status } : { status, error: `The webhook answered ${status}.` };
      } catch (error) {
        if (isClosed) return { error: "This service stopped before the webhook answered.", isCut: true };
        return { error: reasonOf(error) };
      }
    },
    close() {
      isClosed = true;
      return agent.destroy();
    },
  };
}

/**
 * The headers of Standard Webhooks 1.0: HMAC-SHA256 over identifier, time and body, so that a receiver can refuse
 * events that are old or were sent before.
 */
function signature(id: string, secret: string, body: string): Record<string, string> {
  const seconds = String(Math.floor(Date.now() / 1_000));
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": `v1,${signed}` };
}

/** Resolves names and refuses those of which any address is not public. The connection uses the same addresses. */
function checked(isTrusted: (host: string) => boolean, resolve: Resolve): Resolve {
  return async (name) => {
    const host = name.toLowerCase();
    const found = await resolve(host);
    if (isTrusted(host) || found.every(({ address }) => isPublicAddress(address))) return found;
    throw nameError("EPRIVATE", host);
  };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "The webhook cannot be reached.";
  if (error.name === "TimeoutError") return `The webhook did not answer within ${TIMEOUT_MS / 1_000} seconds.`;
  const code = "code" in error ? String(error.code) : error.name;
  if (code === "EPRIVATE") return "The webhook's name leads to an address that is not public.";
  return `The webhook cannot be reached (${code}).`;
}
