import { SCRIPTS } from "./answer.ts";
import { SESSIONS } from "./http2.ts";
import { nginxVersion } from "./nginx.ts";
import type { Options } from "./options.ts";
import { CONNECTIONS, PACED_STREAMS } from "./rounds.ts";
import { pinned } from "./server.ts";

/** How the figures were measured, as a list in Markdown. */
export function methodText({ rounds, seconds }: Options): string {
  const placement = pinned
    ? "The server under test has a core to itself. Load generator, upstream and Postgres share the other cores."
    : "All processes share all cores, because the server under test could not be pinned to a core.";
  const version = nginxVersion();
  const nginx = version
    ? `nginx ${version} is \`proxy_pass\` in one process with kept connections and without buffering: the floor.`
    : "nginx is not installed, so the floor was not measured (Debian: `nginx-light`).";
  const { burst, paced } = SCRIPTS;
  const duration = `${rounds}, of ${seconds} s each`;
  return `- Each figure is the median of the rounds (${duration}). The servers take turns in each round, in
  alternating order. Unary and burst, there are ${CONNECTIONS} connections, each with one request at a time.
- ${placement}
- Processor time is that of the server's process, user and system. Postgres is another process and does not count.
- The upstream is static: an OpenAI chat completion, ${burst.tokens.length} events that it sends with one write
  (burst), or ${paced.tokens.length} events, one write each ${paced.intervalMs} ms (paced).
- Streams are counted by the tokens of the upstream that arrive, not by events or writes, for all servers alike: a
  server may join the tokens of one read into one event. Each token has a character that occurs nowhere else.
- Paced, there are ${PACED_STREAMS} streams, which start at random times. "Of the pace" compares the rate with
  ${PACED_STREAMS} tokens each ${paced.intervalMs} ms. A server that needs its whole core falls behind and then reads
  several tokens at once, so its time per token is lower than it is at the pace.
- "load + upstream" is the processor time of load generator and upstream together, in cores. At 100 % of the cores
  that they share, they limit the rate; processor time per item is then still right.
- The bare relay is \`node:http\` with undici's \`Pool\`. Unary, it passes the bytes through. As a stream, it parses the
  events of the upstream and writes its own, one write per event.
- ${nginx}
- Chorus runs with \`--use-largepages=silent\`, as \`npm start\` starts it; the others run as \`node\` starts them.
- Chorus is the complete service with its embedded Postgres: key, limits and credit in a durable lease, validation,
  token count, and charge and record of each answer before it is sent.
- Chorus ungoverned is the same code without key, lease, charge and database.
- Portkey is \`@portkey-ai/gateway\` 1.15.2 without keys, limits or billing.
- RPC uses binary messages. REST, SSE and Connect on HTTP/1.1 have a connection per concurrent request; HTTP/2 has
  ${SESSIONS} connections for all. The echoes call no upstream.
- Memory is the growth of the resident memory of a newly started server, divided by the number of streams. It includes
  the connections to both sides. The garbage collector is not called.
- Status, framing and end of every response were checked, and the complete text of one in a hundred. None was wrong.`;
}
