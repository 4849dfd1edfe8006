import { create, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import {
  Effort,
  FinishReason,
  StepKind,
  StepOutcome,
  StepRole,
  StreamGenerateResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";

const TEXT = `A **choir** is a group that sings together, usually in four parts:

1. *Soprano* and *alto*, the high voices
2. *Tenor* and *bass*, the low voices

| Part | Range |
| --- | --- |
| Soprano | C4 to A5 |
| Bass | E2 to E4 |

\`\`\`python
def blend(voices: list[Voice]) -> Sound:
    # Every voice counts once.
    return sum(voices) / len(voices)
\`\`\`

> Unlike an orchestra, a choir needs no instruments.
`;

const step = (
  id: number,
  kind: StepKind,
  role: StepRole,
  [startedMs, durationMs]: [number, number],
  outcome = StepOutcome.OK,
  detail = "",
) => ({ id, kind, role, startedMs, durationMs, outcome, ...(detail ? { detail } : {}) });

export const STEPS = [
  step(1, StepKind.DRAFT, StepRole.STRONG, [12, 2140]),
  step(2, StepKind.DRAFT, StepRole.STRONG, [12, 1810]),
  step(3, StepKind.DRAFT, StepRole.FAST, [12, 2600], StepOutcome.DROPPED, "too late for the judge"),
  step(4, StepKind.JUDGE, StepRole.STRONG, [2160, 640], StepOutcome.OK, "chose draft 2 of 2"),
  step(5, StepKind.WRITE, StepRole.STRONG, [2805, 1290]),
];

const words = TEXT.match(/\S+\s*|\s+/g) ?? [];

type Event = MessageInitShape<typeof StreamGenerateResponseSchema>["event"];

const EVENTS: NonNullable<Event>[] = [
  ...words.map((text) => ({ case: "delta" as const, value: { text } })),
  {
    case: "done",
    value: {
      id: "gen_k2m4p6",
      requestId: "req_7h3n9qx2",
      usage: { inputTokens: 28, cachedTokens: 0, outputTokens: 142, credits: 0.00149 },
      finishReason: FinishReason.STOP,
      intelligenceTrace: {
        intelligenceLevel: Effort.HIGH,
        reasons: ["several constraints", "an open question"],
        models: 4,
        agreement: 0.67,
        droppedMembers: 1,
        internalInputTokens: 412n,
        internalOutputTokens: 980n,
        steps: STEPS,
      },
    },
  },
];

/** The messages of a streamed answer, as JSON texts. */
export const answer: string[] = EVENTS.map((event) =>
  JSON.stringify(toJson(StreamGenerateResponseSchema, create(StreamGenerateResponseSchema, { event }))),
);

/** An error body of the Connect protocol. */
export const failure = {
  code: "unavailable",
  message: "The database does not answer. Try again in a few seconds.",
  details: [
    {
      type: FailureDetailSchema.typeName,
      value: Buffer.from(
        toBinary(FailureDetailSchema, create(FailureDetailSchema, { code: "overloaded", requestId: "req_5t8w1z" })),
      ).toString("base64"),
    },
  ],
};
