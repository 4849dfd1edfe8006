import { createServer, type ServerResponse } from "node:http";
import { Pool } from "undici";

/**
 * A minimal gateway in Node, the baseline of the comparison. `/v1/chat/completions` passes a JSON response through
 * without parsing it; `/v1/generate:stream` parses the events of the upstream and writes its own, with one write per
 * event.
 */
function serveRelay(port: number, upstream: string): void {
  const pool = new Pool(upstream, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      const relay = request.url === "/v1/generate:stream" ? relayEvents : relayUnary;
      relay(pool, body, response).catch((error) => response.destroy(error));
    });
  }).listen(port, "127.0.0.1");
}

async function relayUnary(pool: Pool, body: Buffer, response: ServerResponse): Promise<void> {
  const answer = await call(pool, body);
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  response.writeHead(answer.statusCode, { "Content-Type": "application/json", "Content-Length": bytes.length });
  response.end(bytes);
}

async function relayEvents(pool: Pool, body: Buffer, response: ServerResponse): Promise<void> {
  const answer = await call(pool, body);
  response.writeHead(answer.statusCode, { "Content-Type": "text/event-stream" });
  let rest = "";
  answer.body.setEncoding("utf8");
  for await (const part of answer.body) {
    const events = (rest + part).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const own = ownEvent(event.slice("data: ".length));
      if (own !== "") response.write(own);
    }
  }
  response.end();
}

function ownEvent(data: string): string {
  if (data === "[DONE]") return "event: done\ndata: {}\n\n";
  const text = JSON.parse(data).choices[0]?.delta.content;
  return text ? `event: delta\ndata: {"text":${JSON.stringify(text)}}\n\n` : "";
}

function call(pool: Pool, body: Buffer) {
  const headers = { "content-type": "application/json" };
  return pool.request({ method: "POST", path: "/v1/chat/completions", headers, body });
}

serveRelay(Number(process.argv[2]), process.argv[3] ?? "");
