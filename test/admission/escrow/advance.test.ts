import assert from "node:assert/strict";
import { test } from "vitest";
import { Escrow } from "../../../src/admission/escrow/escrow.ts";
import type { Event } from "../../../src/admission/escrow/events.ts";
import type { Headroom, Item, Reply } from "../../../src/admission/escrow/exchange.ts";
import { NOTHING } from "../../../src/admission/escrow/exchange.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

/** A replica of one workspace whose requests are all admitted. By default it gets all spare headroom. */
function replica(give: (item: Item) => Partial<Headroom> = spareOf, isOver = false) {
  const escrow = new Escrow("r1");
  let count = 0;
  const handle = (event: Event, now: number): Item[] => {
    escrow.handle({ type: "beat", sentAt: now, isDeaf: false }, now);
    const sent: Item[] = [];
    for (const command of escrow.handle(event, now)) {
      if (command.type !== "send") continue;
      sent.push(...command.items);
      const replies = command.items.map((item): Reply => {
        if (item.mode === "append") return { state: "appended" };
        const none = { grant: 1, charges: {}, minute: 0, msLeft: 600_000, isOver };
        return { state: "done", verdicts: item.asks.map(() => ({})), ...none, extra: { ...NOTHING, ...give(item) } };
      });
      escrow.handle({ type: "receive", mode: command.mode, replies }, now);
    }
    return sent;
  };
  return {
    escrow,
    /** @returns the identifier of the request, and the items that were sent */
    request(now: number, hold: number, input: number, key?: string): { id: string; items: Item[] } {
      const id = `q${count++}`;
      const ask = { requestId: id, hold, input, ...(key === undefined ? {} : { key }) };
      return { id, items: handle({ type: "request", workspace: "ws_1", ...ask }, now) };
    },
    settle: (now: number, requestId: string, charge: number, output: number) =>
      handle({ type: "settle", posts: [{ requestId, charge, output, row: {} }] }, now),
    handle,
  };
}

/** Headroom of a workspace with all limits. */
function spareOf({ spare: { n, credit, input, output } }: Item): Headroom {
  return { credit: n * credit, running: n, requests: n, input: n * input, output: n * output };
}

function spares(items: readonly Item[]): Item["spare"][] {
  return items.map(({ spare }) => spare);
}

test("takes headroom for the mean request and answer of the last one to two seconds", () => {
  const { request, settle } = replica((item) => ({ ...spareOf(item), output: LIMITLESS }));
  const first = request(0, 10, 1);
  assert.deepEqual(spares(first.items), [{ n: 0, credit: 0, input: 0, output: 1 }]);
  const second = request(100, 20, 4);
  assert.deepEqual(spares(second.items), [{ n: 0, credit: 10, input: 1, output: 1 }]);
  assert.deepEqual(spares(settle(200, first.id, 10, 5)), [{ n: 2, credit: 15, input: 3, output: 5 }]);
  assert.deepEqual(
    settle(1_100, second.id, 20, 8).map(({ mode }) => mode),
    ["append"],
  );
  assert.deepEqual(spares(request(1_150, 30, 9, "key").items), [{ n: 0, credit: 15, input: 3, output: 7 }]);
  // The requests of the first second count no more. Requests are seconds apart now.
  assert.deepEqual(spares(request(2_100, 40, 8, "key").items), [{ n: 16, credit: 30, input: 9, output: 8 }]);
  // None has come for more than a second. Further ones are expected to be as the last ones.
  assert.deepEqual(spares(request(4_000, 40, 8, "key").items), [{ n: 0, credit: 30, input: 9, output: 8 }]);
});

test("takes headroom for requests without input tokens", () => {
  const { request } = replica();
  const sent = [0, 1, 2].map((now) => request(now, 10, 0).items[0]?.spare.n);
  assert.deepEqual(sent, [0, 0, 2]);
});

test("takes no headroom after one request, and when none has come for two seconds", () => {
  const { request, settle, handle } = replica();
  const { id } = request(0, 10, 1);
  assert.deepEqual(
    settle(10, id, 10, 1).map(({ spare, close }) => [spare.n, close]),
    [[0, true]],
  );
  const [a, b] = [request(100, 10, 1), request(110, 10, 1)];
  assert.equal(b.items[0]?.spare.n, 2);
  for (const one of [a, b]) settle(130, one.id, 10, 1);
  assert.deepEqual(handle({ type: "tick" }, 2_109), []);
  const returned = handle({ type: "tick" }, 2_131);
  assert.deepEqual(
    returned.map(({ keep, close }) => [keep, close]),
    [[NOTHING, true]],
  );
  assert.deepEqual(handle({ type: "tick" }, 4_200), []);
});

test("takes headroom again when less than a quarter of the expected requests fits, by its scarcest part", () => {
  const plenty = { credit: 1_000, running: 100, requests: 100, input: 1_000, output: 1_000 };
  for (const scarce of [{ credit: 20 }, { running: 2 }, { requests: 2 }, { input: 8 }]) {
    const { request, settle } = replica(({ spare }) => (spare.n > 0 ? { ...plenty, ...scarce } : {}));
    const [a = "", b = "", c = ""] = [0, 1, 2, 3].map((now) => request(now, 10, 4).id);
    // One of four requests fits.
    assert.deepEqual(sentOf(settle(10, a, 10, 1)), ["append 0"], Object.keys(scarce)[0]);
    request(11, 10, 4);
    if ("running" in scarce) request(12, 10, 4);
    const n = "running" in scarce ? 6 : 5;
    assert.deepEqual(sentOf(settle(13, b, 10, 1)), [`exchange ${"running" in scarce ? n - 1 : n}`]);
    assert.deepEqual(sentOf(settle(14, c, 10, 1)), ["append 0"]);
  }
});

function sentOf(items: readonly Item[]): string[] {
  return items.map(({ mode, spare }) => `${mode} ${spare.n}`);
}

test("keeps what twice the expected requests need, and returns the rest", () => {
  const plenty = { credit: 1_000, running: 100, requests: 100, input: 1_000, output: 1_000 };
  const { request } = replica(() => plenty);
  for (let i = 0; i < 2; i++) request(i, 10, 4, "key");
  const kept = request(2, 10, 4, "key").items[0]?.keep;
  assert.deepEqual(kept, { credit: 40, running: 4, requests: 4, input: 16, output: 4 });
});

test("keeps parts without a limit, and returns nothing of them", () => {
  const { request } = replica(() => ({ credit: 1_000, running: LIMITLESS, requests: 9, input: LIMITLESS, output: 9 }));
  for (let i = 0; i < 2; i++) request(i, 10, 0, "key");
  const kept = request(2, 10, 0, "key").items[0]?.keep;
  assert.deepEqual(kept, { credit: 40, running: LIMITLESS, requests: 4, input: LIMITLESS, output: 4 });
});

test("reserves nothing in advance for a second after another replica needed headroom", () => {
  const { request, settle, handle } = replica();
  const [a = "", b = "", c = ""] = Array.from({ length: 5 }, (_, i) => request(i, 10, 4).id);
  assert.deepEqual(sentOf(settle(10, a, 10, 1)), ["exchange 5"]);
  const [returned] = handle({ type: "callBack", workspace: "ws_1" }, 20);
  assert.deepEqual([returned?.keep, returned?.spare.n], [NOTHING, 0]);
  const [quiet] = settle(1_019, b, 5, 1);
  assert.deepEqual([quiet?.mode, quiet?.keep, quiet?.spare.n], ["exchange", NOTHING, 0]);
  assert.deepEqual(sentOf(settle(1_020, c, 10, 1)), ["exchange 5"]);
});

test("returns what it does not use when more is reserved than a limit allows", () => {
  const { request, settle, handle } = replica(spareOf, true);
  const ids = Array.from({ length: 3 }, (_, i) => request(i, 10, 4).id);
  assert.ok(ids[0]);
  assert.deepEqual(
    [...settle(10, ids[0], 5, 1), ...handle({ type: "tick" }, 11)].map(({ keep, spare }) => [keep, spare.n]).at(-1),
    [NOTHING, 0],
  );
});

test("reserves nothing in advance while call-backs of others may be lost", () => {
  const { escrow, request } = replica();
  const ids = Array.from({ length: 4 }, (_, i) => request(i, 10, 4).id);
  escrow.handle({ type: "beat", sentAt: 5, isDeaf: true }, 5);
  const sent = escrow.handle(
    { type: "settle", posts: [{ requestId: ids[0] ?? "", charge: 5, output: 1, row: {} }] },
    6,
  );
  const items = sent.flatMap((command) => (command.type === "send" ? command.items : []));
  for (const { keep, spare } of items) assert.deepEqual([keep, spare.n], [NOTHING, 0]);
});
