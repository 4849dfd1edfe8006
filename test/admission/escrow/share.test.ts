import assert from "node:assert/strict";
import { test } from "vitest";
import type { Ask, Headroom, SubjectReport } from "../../../src/admission/escrow/exchange.ts";
import { HALF_FULL, Share } from "../../../src/admission/escrow/share.ts";

const ASK: Ask = { requestId: "q", hold: 10, input: 2, subjects: ["user:u"] };
const INFINITE = Number.POSITIVE_INFINITY;
const UNUSED: SubjectReport = { subject: "user:u", used: { requests: 0, input: 0 }, held: { credit: 0, running: 0 } };
const ENDS = 60_000;

function roomFor(n: number, more: Partial<Headroom> = {}): Headroom {
  return { credit: 10 * n, running: n, requests: n, input: 2 * n, output: 100, ...more };
}

/** A share that has got headroom. */
function shareWith(extra: Headroom, ends = ENDS): Share {
  const share = new Share("user:u");
  const report = { ...UNUSED, returns: true, spare: { n: 1, credit: 1, input: 1, output: 1 } };
  share.receive(report, { subject: "user:u", extra, msLeft: ends }, 0, ends);
  return share;
}

/** Notes `n` requests as large as ASK, so that as many are expected. */
function expectRequests(share: Share, n: number, now: number): void {
  for (let i = 0; i < n; i++) share.demand.admitted(ASK.hold, ASK.input, now);
}

test("fits requests until one part of the headroom is used up, or its minute is over", () => {
  for (const part of ["credit", "running", "requests", "input"] as const) {
    const share = shareWith(roomFor(9, { [part]: 2 * { credit: 10, running: 1, requests: 1, input: 2 }[part] }));
    for (let i = 0; i < 2; i++) {
      assert.equal(share.fits(ASK, 0), true, part);
      share.take(ASK);
    }
    assert.equal(share.fits(ASK, 0), false, part);
  }
  const share = shareWith(roomFor(1), 1_000);
  assert.deepEqual([share.fits(ASK, 999), share.fits(ASK, 1_000)], [true, false]);
  assert.equal(new Share("user:u").fits(ASK, 0), false);
});

test("gets back at a settlement what its hold had more than its charge, and reports its charge", () => {
  const share = shareWith(roomFor(3));
  share.take(ASK);
  share.take(ASK);
  share.settle(10, 4, 7);
  assert.deepEqual(share.free.parts, { credit: 16, running: 2, requests: 1, input: 2, output: 93 });
  assert.deepEqual(share.report(), {
    subject: "user:u",
    used: { requests: 2, input: 4 },
    held: { credit: 14, running: 1 },
  });
  assert.deepEqual(share.report().used, { requests: 0, input: 0 }, "it is reported once");
});

test("returns all with an item, and takes in advance what twice the expected requests need", () => {
  const share = shareWith(roomFor(3));
  share.take(ASK);
  expectRequests(share, 3, 0);
  const report = share.return(undefined, 0, true);
  assert.deepEqual(report, {
    ...UNUSED,
    used: { requests: 1, input: 2 },
    held: { credit: 10, running: 1 },
    returns: true,
    spare: { n: 6, credit: 10, input: 2, output: 1 },
  });
  assert.deepEqual(share.free.parts, { credit: 0, running: 0, requests: 0, input: 0, output: 0 });
  assert.equal(share.fits(ASK, 0), false);
  const extra = roomFor(6);
  share.receive(report, { subject: "user:u", extra, msLeft: ENDS }, 0, ENDS);
  assert.equal(share.fits(ASK, 0), true);
});

test("takes nothing in advance without demand, where it may not, and for a second after a call-back", () => {
  const spare = (share: Share, now: number, canReserve = true) => share.return(undefined, now, canReserve).spare?.n;
  assert.equal(spare(shareWith(roomFor(1)), 0), undefined);
  const busy = () => {
    const share = shareWith(roomFor(1));
    expectRequests(share, 2, 1_500);
    return share;
  };
  assert.equal(spare(busy(), 1_500), 4);
  assert.equal(spare(busy(), 1_500, false), undefined);
  for (const [now, n] of [
    [1_999, undefined],
    [2_000, 4],
  ] as const) {
    const share = busy();
    share.callBack(1_000);
    assert.equal(spare(share, now), n);
  }
  const share = busy();
  share.callBack();
  assert.equal(spare(share, 1_500), 4, "without a time it may take some at once");
});

test("admits nothing between a call-back and the item that returns", () => {
  const share = shareWith(roomFor(2));
  share.callBack(0);
  assert.deepEqual([share.mustReturn, share.fits(ASK, 0)], [true, false]);
  const report = share.return(undefined, 0, false);
  assert.deepEqual([share.mustReturn, share.fits(ASK, 0), share.free.isOver(0)], [false, false, true]);
  Object.assign(share.free, roomFor(1));
  share.free.startMinute(0, ENDS);
  assert.equal(share.fits(ASK, 0), false, "it returns");
  share.receive(report, undefined, 0, ENDS);
  assert.equal(share.isEmpty, true);
  const fresh = new Share("user:u");
  fresh.callBack(0);
  assert.equal(fresh.mustReturn, false, "nothing is reserved");
  expectRequests(fresh, 2, 1_500);
  assert.equal(fresh.return(undefined, 1_500, true).returns, true);
  fresh.callBack();
  assert.equal(fresh.mustReturn, true, "what it has asked for may be reserved");
});

test("returns again while requests hold something, and says nothing more of itself when nothing is left", () => {
  const share = shareWith(roomFor(2));
  share.take(ASK);
  share.receive(share.return(undefined, 0, false), undefined, 0, ENDS);
  share.callBack();
  assert.equal(share.mustReturn, true, "what the request holds is reserved");
  share.settle(10, 0, 0);
  share.receive(share.return(undefined, 0, false), undefined, 0, ENDS);
  share.callBack();
  assert.equal(share.mustReturn, false);
  assert.equal(share.return(undefined, 0, false).returns, undefined);
  assert.equal(share.isEmpty, true);
});

test("is empty without reserved headroom, running requests and charges that are not sent", () => {
  assert.equal(new Share("user:u").isEmpty, true);
  assert.equal(shareWith(roomFor(1)).isEmpty, false);
  const share = shareWith(roomFor(1));
  share.take(ASK);
  const free = { ...UNUSED, returns: true };
  share.receive(free, undefined, 0, ENDS);
  assert.equal(share.isEmpty, false, "a request runs");
  share.settle(10, 3, 0);
  assert.equal(share.isEmpty, false, "its charge is not sent");
  share.owed = 0;
  assert.equal(share.isEmpty, true);
  share.return({ ...UNUSED, held: { credit: 1, running: 0 } }, 0, false);
  assert.equal(share.isEmpty, false, "it returns");
});

test("stays reserved after an item that has returned, if something is held or granted", () => {
  const after = (held: SubjectReport["held"], isGranted: boolean) => {
    const share = shareWith(roomFor(1));
    const grant = isGranted ? { subject: "user:u", extra: roomFor(1), msLeft: ENDS } : undefined;
    share.receive({ ...UNUSED, held, returns: true }, grant, 0, ENDS);
    return !share.isEmpty;
  };
  assert.equal(after({ credit: 0, running: 0 }, false), false);
  assert.equal(after({ credit: 1, running: 0 }, false), true);
  assert.equal(after({ credit: 0, running: 1 }, false), true);
  assert.equal(after({ credit: 0, running: 0 }, true), true);
});

test("is low when less than a quarter of the expected requests fits, or less than all if another needs some", () => {
  const low = (n: number, part?: number) => {
    const share = shareWith(roomFor(n));
    expectRequests(share, 8, 0);
    return part === undefined ? share.isLow(0) : share.isLow(0, part);
  };
  assert.deepEqual([low(1), low(2), low(7, HALF_FULL), low(8, HALF_FULL)], [true, false, true, false]);
});

test("is not low while it returns, is called back, or after its minute", () => {
  const low = (now: number, change: (share: Share) => void = () => undefined) => {
    const share = shareWith(roomFor(0), 900);
    expectRequests(share, 8, 0);
    change(share);
    return share.isLow(now);
  };
  assert.equal(low(0), true);
  assert.equal(low(900), false);
  assert.equal(
    low(0, (share) => share.callBack()),
    false,
  );
  assert.equal(
    low(0, (share) => share.return(undefined, 0, true)),
    false,
  );
  const quiet = (now: number) => {
    const share = shareWith(roomFor(0));
    share.callBack(0);
    share.mustReturn = false;
    expectRequests(share, 8, 999);
    return share.isLow(now);
  };
  assert.deepEqual([quiet(999), quiet(1_000)], [false, true]);
});

test("is not low when its requests are seconds apart", () => {
  const share = shareWith(roomFor(0));
  share.demand.admitted(10, 2, 0);
  share.demand.admitted(10, 2, 5_000);
  assert.equal(share.isLow(5_000), false);
});

test("asks for what is missing to twice the expected requests, in the minute of what it has", () => {
  const share = shareWith(roomFor(3));
  expectRequests(share, 4, 0);
  const report: SubjectReport = { ...UNUSED };
  share.refill(report, 0);
  assert.deepEqual(report.spare, { n: 5, credit: 10, input: 2, output: 1, minute: 0 });
  share.receive(report, { subject: "user:u", extra: roomFor(5), msLeft: 1 }, 0, 1);
  assert.equal(share.free.requests, 8);
  assert.equal(share.fits(ASK, 2), true, "the end of its minute stays");
});

test("returns what it has when the database knows a cap of a part that had none", () => {
  const refilled = (before: Partial<Headroom>, extra: Partial<Headroom>, returns = false) => {
    const share = shareWith(roomFor(1, before));
    const report = { ...UNUSED, returns, spare: { n: 1, credit: 1, input: 1, output: 1 } };
    share.receive(report, { subject: "user:u", extra: roomFor(1, extra), msLeft: ENDS }, 0, ENDS);
    return share.mustReturn;
  };
  assert.equal(refilled({ credit: INFINITE }, {}), true);
  assert.equal(refilled({ credit: INFINITE }, { credit: INFINITE }), false);
  assert.equal(refilled({}, {}), false);
  assert.equal(refilled({}, { credit: INFINITE }), false);
  assert.equal(refilled({ credit: INFINITE }, {}, true), false, "all of it is new");
});

test("counts again what an item has said that the database has not applied, and may return once more", () => {
  const share = shareWith(roomFor(2));
  share.take(ASK);
  const report = share.return(undefined, 0, false);
  share.take({ ...ASK, input: 3 });
  share.takeBack(report);
  assert.deepEqual(share.used, { requests: 2, input: 5 });
  assert.equal(share.hasIdle, true);
  share.free.add(roomFor(3), { running: 0, requests: 0, input: 0, output: 0 });
  share.free.startMinute(0, ENDS);
  assert.equal(share.fits(ASK, 0), true);
  const other = shareWith(roomFor(1));
  other.hasIdle = false;
  other.takeBack({ ...UNUSED });
  assert.equal(other.hasIdle, false, "nothing was returned");
});

test("is idle without requests for a while, and after its minute if something may be left", () => {
  const idle = (now: number, hasIdle: boolean) => {
    const share = shareWith(roomFor(1), 1_000);
    share.demand.admitted(10, 2, 0);
    share.hasIdle = hasIdle;
    return share.isIdle(now);
  };
  assert.deepEqual(
    [idle(999, true), idle(1_000, true), idle(1_000, false), idle(2_000, false)],
    [false, true, false, true],
  );
  const settled = shareWith(roomFor(2), 1_000);
  settled.demand.admitted(10, 2, 0);
  settled.take(ASK);
  settled.return(undefined, 0, false);
  assert.equal(settled.hasIdle, false);
  settled.settle(10, 1, 0);
  assert.equal(settled.hasIdle, true);
  assert.equal(new Share("user:u").hasIdle, false);
});
