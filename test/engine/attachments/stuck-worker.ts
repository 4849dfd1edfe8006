import { parentPort } from "node:worker_threads";

/** A reading worker that obeys the text of each file: it hangs, dies, or reports the text. */
parentPort?.on("message", ({ files }: { files: Array<{ index: number; data: Uint8Array }> }) => {
  const texts = files.map(({ index, data }) => ({ index, text: Buffer.from(data).toString(), tokens: 1 }));
  for (const { index, text } of texts) {
    parentPort?.postMessage({ kind: "progress", part: index });
    if (text === "die") throw new Error("inner cause");
    while (text === "hang");
  }
  parentPort?.postMessage({ kind: "done", result: { texts, notices: [] } });
});
