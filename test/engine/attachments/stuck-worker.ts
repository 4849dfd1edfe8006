import { parentPort, threadId } from "node:worker_threads";

const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * A reading worker that obeys the text of each file: it hangs, works for 100 ms, does not get the processor for 1.5 s
 * or for ever, dies, or reports text or thread.
 */
parentPort?.on("message", ({ files }: { files: Array<{ index: number; data: Uint8Array }> }) => {
  const textOf = (data: Uint8Array) => Buffer.from(data).toString().replace("thread", String(threadId));
  const texts = files.map(({ index, data }) => ({ index, text: textOf(data), tokens: 1 }));
  for (const { index, text } of texts) {
    parentPort?.postMessage({ kind: "progress", part: index });
    if (text === "die") throw new Error("inner cause");
    if (text === "starve") Atomics.wait(never, 0, 0);
    if (text === "wait") Atomics.wait(never, 0, 0, 1_500);
    const end = performance.now() + 100;
    while (text === "hang" || (text === "work" && performance.now() < end));
  }
  parentPort?.postMessage({ kind: "done", result: { texts, notices: [] } });
});
