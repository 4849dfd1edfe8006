/**
 * Time in which a connection must send its first bytes, and the head of a request must arrive, in milliseconds. The
 * same over HTTP/1.1 and HTTP/2.
 */
export const HEAD_MS = 20_000;

/**
 * Time limits of HTTP/1.1 connections for both listeners, in milliseconds: idle, for the headers, for the whole
 * request, and between two searches for connections that exceed them.
 */
export const SOCKET_TIMEOUTS = {
  keepAliveTimeout: 65_000,
  headersTimeout: HEAD_MS,
  requestTimeout: 300_000,
  connectionsCheckingInterval: 1_000,
};
