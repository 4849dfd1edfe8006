import assert from "node:assert/strict";
import { test } from "vitest";
import { complete, type ModelCall } from "../../src/models/port/model.ts";
import { untilStop } from "../../src/models/until-stop.ts";
import { call, collect, end, fakeModel, pieces, text } from "./fake-model.ts";

const STOPPED: Partial<ModelCall> = { streamed: false, stops: ["END"], containsStop: true };

test("ends a completion with its stop sequence, and asks for a stream without the sequences", async () => {
  let isLeft = false;
  const model = fakeModel(async function* () {
    try {
      yield* pieces("One. E", "ND Two.", " Three.");
    } finally {
      isLeft = true;
    }
  });
  const { text: whole, end: last } = await complete(untilStop(model), call(STOPPED));
  assert.deepEqual([whole, last.reason, last.model], ["One. END Two.", "stop", "fake"]);
  assert.deepEqual([model.calls[0]?.stops, model.calls[0]?.streamed, isLeft], [undefined, true, true]);
});

test("delivers no text before the end", async () => {
  const calls = { type: "calls" as const, calls: [{ name: "look", arguments: "{}" }] };
  const model = fakeModel(() => [text("a"), { type: "progress" }, text("b"), calls, end("length")]);
  const all = await collect(untilStop(model).ask(call(STOPPED)));
  const [first, ...others] = all.filter(({ type }) => type !== "progress");
  assert.deepEqual([first, ...others], [text("ab"), calls, end("length")]);
});

test("changes no other call", async () => {
  for (const more of [{}, { stops: ["END"] }, { containsStop: true }]) {
    const model = fakeModel(() => pieces("a", " END", " b"));
    assert.deepEqual(
      await collect(untilStop(model).ask(call({ streamed: false, ...more }))),
      pieces("a", " END", " b"),
    );
    assert.deepEqual([model.calls[0]?.stops, model.calls[0]?.streamed], [more.stops, false]);
  }
});
