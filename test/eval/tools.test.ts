import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { missedByToolPlans } from "../../eval/gates.ts";
import { toolPanelsPart } from "../../eval/tool-panels.ts";
import { FAST, PEERS, STRONG, toolPlansPart } from "../../eval/tool-plans.ts";
import { readToolRow, scoreOf, type ToolRow, vendorOf } from "../../eval/tool-rows.ts";

const FUNCTIONS = [
  {
    name: "add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
  },
];

/** A question that `add(1, 2)` answers; in `relevance`, no call is right. @param said arguments; null: text */
function rowOf(category: string, said: Readonly<Record<string, unknown>>): ToolRow {
  const isRight = (given: unknown) => (category === "relevance" ? given === null : JSON.stringify(given) === RIGHT);
  const outputs = Object.fromEntries(
    Object.entries(said).map(([name, given]) => [
      name,
      {
        ...(given === null ? { text: "None fits." } : { calls: [{ name: "add", arguments: given }] }),
        ok: isRight(given) ? 1 : 0,
        tok: [100, 10],
      },
    ]),
  );
  const question = [{ role: "user", content: "Add 1 and 2." }];
  const line = { id: "q", category, question, functions: FUNCTIONS, outputs, gold: null };
  return readToolRow(line) ?? assert.fail("No row.");
}

const RIGHT = '{"a":1,"b":2}';
const right = { a: 1, b: 2 };

describe("recorded calls of tools", () => {
  test("have forms, and the score of equal calls when they are corrected", () => {
    const row = rowOf("simple", { one: right, other: { a: "1", b: "2" }, invalid: { a: 1 }, none: null });
    const { one, other, invalid, none } = row.models;
    assert.equal(other?.form, one?.form);
    assert.deepEqual(
      [one?.isRepaired, other?.isRepaired, invalid?.form, none?.form],
      [false, true, undefined, "no call"],
    );
    assert.deepEqual([other?.score, scoreOf(row, other?.form, other)], [0, 1]);
    assert.equal(scoreOf(row, invalid?.form, invalid), 0);
    assert.equal(readToolRow({ id: "x", prompt: "p", models: {} }), undefined);
    assert.deepEqual([...PEERS, "open-mistral-nemo"].map(vendorOf), ["claude", "salesforce", "meetkai", "mistral"]);
  });

  test("are served by the plans of the service, and the gates watch them", async () => {
    const [mini = "", flash = ""] = FAST;
    const wrong = { a: 2, b: 2 };
    const peers = Object.fromEntries(PEERS.map((name) => [name, right]));
    const rows = [
      rowOf("simple", { ...peers, [mini]: right, [flash]: right, [STRONG]: wrong }),
      rowOf("simple", { ...peers, [mini]: right, [flash]: wrong, [STRONG]: right }),
      rowOf("simple", { ...peers, [mini]: wrong, [flash]: right, [STRONG]: right }),
      rowOf("relevance", {
        [PEERS[0] ?? ""]: wrong,
        [PEERS[1] ?? ""]: wrong,
        [PEERS[2] ?? ""]: null,
        [mini]: null,
        [flash]: null,
        [STRONG]: null,
      }),
    ];
    const plans = await toolPlansPart(rows);
    const all = plans.filter(({ category }) => category === "all");
    assert.deepEqual(
      all.map(({ accuracy, best }) => [accuracy, best].map((each) => Number(each.toFixed(2)))),
      [
        [1, 0.75],
        [1, 0.75],
        [0.75, 1],
      ],
    );
    assert.ok((all[0]?.cost_share ?? 0) > 0 && (all[0]?.calls ?? 0) > 2);
    assert.equal(missedByToolPlans("bfcl", plans).length, 2);
    const panels = toolPanelsPart(rows);
    assert.deepEqual(new Set(panels.map(({ number }) => number)), new Set([100]));
    assert.ok(panels.every(({ gain_share }) => gain_share >= 0 && gain_share <= 1));
  });
});
