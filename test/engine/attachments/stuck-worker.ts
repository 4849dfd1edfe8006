import { parentPort, threadId } from "node:worker_threads";

/** A reading worker that obeys the text of each file: it hangs, works for 100 ms, dies, or reports text or thread. */
parentPort?.on("message", ({ files }: { files: Array<{ index: number; data: Uint8Array }> }) => {
  const textOf = (data: Uint8Array) => Buffer.from(data).toString().replace("thread", String(threadId));
  const texts = files.map(({ index, data }) => ({ index, text: textOf(data), tokens: 1 }));
  for (const { index, text } of texts) {
    parentPort?.postMessage({ kind: "progress", part: index });
    if (text === "die") throw new Error("inner cause");
    const end = performance.now() + 100;
    while (text === "hang" || (text === "work" && performance.now() < end));
  }
  parentPort?.postMessage({ kind: "done", result: { texts, notices: [] } });
});
