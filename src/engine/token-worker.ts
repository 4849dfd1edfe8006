import { parentPort } from "node:worker_threads";
import { Encoding } from "./bpe.ts";

interface Job {
  id: number;
  tokens: number;
  pieces: Iterator<string>;
}

/** UTF-16 units of one text that are counted before it is the next text's turn. */
const TURN = 65_536;

const encoding = new Encoding();
const jobs: Job[] = [];

parentPort?.on("message", ({ id, text }: { id: number; text: string }) => {
  jobs.push({ id, tokens: 0, pieces: encoding.pieces(text)[Symbol.iterator]() });
  if (jobs.length === 1) setImmediate(countNext);
});

function countNext(): void {
  const job = jobs.shift();
  if (job && !countTurn(job)) jobs.push(job);
  else if (job) parentPort?.postMessage({ id: job.id, tokens: job.tokens });
  if (jobs.length > 0) setImmediate(countNext);
}

/** Counts one turn of a job. @returns whether the job is done */
function countTurn(job: Job): boolean {
  for (let length = 0; length < TURN; ) {
    const next = job.pieces.next();
    if (next.done) return true;
    const piece = next.value;
    job.tokens += encoding.tokens(piece);
    length += piece.length;
  }
  return false;
}
