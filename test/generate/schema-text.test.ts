import assert from "node:assert/strict";
import fc from "fast-check";
import { afterAll, beforeAll, test } from "vitest";
import { startPanel } from "../helpers/panel.ts";
import type { Reply, VendorCall, VendorKind } from "../helpers/vendors.ts";
import { fileLifetime } from "./callers.ts";

const KINDS = ["openai", "anthropic", "google"] as const;
const RUNS = 50;
/** Schemas of one run, which are sent at the same time. */
const BATCH = 10;

/** What stands around the schema in a vendor's body, by the vendor's mode. */
const PLACES: Record<VendorKind, Record<string, [before: string, after: string]>> = {
  openai: {
    strict: ['"json_schema":{"name":"answer","strict":true,"schema":', "}}}"],
    lax: ['"json_schema":{"name":"answer","strict":false,"schema":', "}}}"],
  },
  anthropic: {
    strict: ['"format":{"type":"json_schema","schema":', "}}}"],
    lax: ['"input_schema":', "}]}"],
  },
  google: { lax: ['"responseJsonSchema":', "}}"] },
};

/** A schema as a caller wrote it, and an answer that is valid against it, without spaces. */
interface Sample {
  schema: string;
  answer: string;
}

/** Texts that a parser would change: integer-like names and those with escapes, and numbers in any spelling. */
const NAMES = fc.constantFrom('"10"', '"2"', '"b"', '"\\u0061"', '"__proto__"', '"constructor"', '"Größe"', '"a b"');
const BIG = "123456789012345678901234567890";
const NOTES = fc.constantFrom(
  "",
  '"description":"A \\u0022note\\u0022",',
  '"default":1.0,',
  '"examples":[1e2,{"9":1,"1":2}],',
  '"title":"T",',
);
const LEAVES = fc.constantFrom<Sample>(
  { schema: '"type":"number","minimum":1.0,"maximum":1e2', answer: "1.50" },
  { schema: `"type":"integer","enum":[2.0,${BIG}]`, answer: BIG },
  { schema: '"type":"integer","const":2E+3', answer: "2E+3" },
  { schema: '"type":"string","minLength":1e0', answer: '"\\u0061"' },
  { schema: '"type":["string","null"]', answer: "null" },
  { schema: '"type":"boolean"', answer: "true" },
);

/** The members of a node, without braces. */
const { node: NODE } = fc.letrec<{ node: Sample }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    LEAVES,
    tie("node").map(({ schema, answer }) => ({
      schema: `"items": {${schema}}, "type":"array", "maxItems":4`,
      answer: `[${answer},${answer}]`,
    })),
    OBJECT(tie("node")),
  ),
}));

function OBJECT(node: fc.Arbitrary<Sample>): fc.Arbitrary<Sample> {
  const properties = fc.uniqueArray(fc.tuple(NAMES, node, NOTES, fc.boolean()), {
    selector: ([name]) => name,
    maxLength: 4,
  });
  const closed = fc.constantFrom('"additionalProperties":false,', '"additionalProperties" : true,', "");
  return fc
    .tuple(properties, closed, fc.boolean(), fc.constantFrom("", " ", "\n  "))
    .map(([all, open, strict, space]) => {
      const members = all.map(([name, { schema }, notes]) => `${name}:${space}{${notes}${schema}}`);
      const required = all.filter(([, , , isRequired]) => strict || isRequired).map(([name]) => name);
      const given = all.filter(([name, , , isGiven]) => required.includes(name) || isGiven);
      return {
        schema: `"type":"object",${space}${open}"properties":{${members}},${space}"required":[${required}]`,
        // Names of an answer are written without needless escapes.
        answer: `{${given.map(([name, { answer }]) => `${JSON.stringify(JSON.parse(name))}:${answer}`)}}`,
      };
    });
}

const SAMPLE = OBJECT(NODE).map(({ schema, answer }) => ({ schema: `{${schema}}`, answer }));

const lifetime = fileLifetime();
let panel: Awaited<ReturnType<typeof startPanel>>;
beforeAll(async () => {
  panel = await startPanel(lifetime);
});
afterAll(() => lifetime.end());

test(`sends ${RUNS * BATCH} schemas to each vendor as the caller's own text`, async () => {
  const modes = new Map<string, number>();
  const answers = new Map<string, string>();
  const idOf = ({ body }: VendorCall) => /Sample (\d+)\./.exec(body)?.[0] ?? assert.fail(body);
  // The first two cannot answer, so each request goes to all three, one after the other.
  for (const kind of KINDS)
    panel.vendors[kind].always(
      (call): Reply => (kind === "google" ? { text: answers.get(idOf(call)) ?? "" } : { status: 451 }),
    );
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(SAMPLE, { minLength: BATCH, maxLength: BATCH }), async (samples) => {
      for (const kind of KINDS) panel.vendors[kind].calls.length = 0;
      const sent = new Map(samples.map((sample) => [`Sample ${count++}.`, sample]));
      await Promise.all(
        [...sent].map(async ([id, { schema, answer }]) => {
          answers.set(id, answer);
          const format = `{"type":"json_schema","schema":${schema}}`;
          const response = await panel.service.post(
            "/v1/generate",
            `{"prompt":"${id}","effort":"low","response_format":${format}}`,
          );
          const text = await response.text();
          assert.equal(response.status, 200, text);
          assert.ok(text.includes(`"structured":${answer}`), text);
          answers.delete(id);
        }),
      );
      for (const kind of KINDS) {
        const { calls } = panel.vendors[kind];
        assert.equal(calls.length, BATCH, kind);
        for (const call of calls) {
          const { schema } = sent.get(idOf(call)) ?? assert.fail();
          const mode = Object.entries(PLACES[kind]).find(([, around]) => call.body.includes(around.join(schema)));
          assert.ok(mode, `${kind} got ${call.body}\nfor ${schema}`);
          modes.set(`${kind} ${mode[0]}`, (modes.get(`${kind} ${mode[0]}`) ?? 0) + 1);
        }
      }
    }),
    { numRuns: RUNS },
  );
  const expected = KINDS.flatMap((kind) => Object.keys(PLACES[kind]).map((mode) => `${kind} ${mode}`));
  assert.deepEqual([...modes.keys()].toSorted(), expected.toSorted(), "every mode was used");
});
