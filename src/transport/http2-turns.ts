import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session } from "node:http2";

type Listener = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** Most requests that begin in one turn of the event loop. Each takes 0.1 to 0.3 ms. */
const PER_TURN = 16;

/**
 * Spreads bursts of requests over several turns of the event loop, in which sessions take turns. A chunk of 64 KB can
 * hold 1,500 requests, and Node begins all of them before anything else runs. A request that is reset before its turn
 * never begins, so a flood of such requests costs only what Node does for each (CVE-2023-44487).
 */
export function beginInTurns(begin: Listener): Listener {
  /** Requests that wait, of each session in the order of arrival. The first session is the next. */
  const waiting = new Map<ServerHttp2Session, Array<[Http2ServerRequest, Http2ServerResponse]>>();
  let isScheduled = false;

  const turn = () => {
    let begun = 0;
    for (const [session, requests] of waiting) {
      if (begun === PER_TURN) break;
      waiting.delete(session);
      const next = requests.shift();
      if (requests.length > 0) waiting.set(session, requests);
      if (!next || next[0].stream.closed || next[0].stream.destroyed) continue;
      begun++;
      begin(...next);
    }
    isScheduled = waiting.size > 0;
    if (isScheduled) setImmediate(turn);
  };

  return (request, response) => {
    const session = request.stream.session as ServerHttp2Session | undefined;
    if (!session) return;
    const requests = waiting.get(session);
    if (requests) requests.push([request, response]);
    else waiting.set(session, [[request, response]]);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(turn);
  };
}
