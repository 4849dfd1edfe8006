import type { FailureKind } from "./failure.ts";

/** The form of an answer: prose, any JSON object, or a JSON object that satisfies the caller's JSON Schema. */
export type Shape = "text" | "extract" | "json_schema";

/** How much work the service spends on a request: `low` calls one fast model, `high` several models. */
export type Level = "low" | "medium" | "high";

/** The level that a caller asks for. With `auto` the service takes it from the difficulty of the prompt. */
export type Effort = "auto" | Level;

/** Class of a model in the catalogue. The fast tier is cheap and quick, the strong tier more accurate. */
export type Tier = "fast" | "strong";

/**
 * How a request ended: `ok` with an answer, `cut_short` with an answer that the service ended early, `caller_gone`
 * because the caller closed the connection, or as a failure.
 */
export type Outcome = "ok" | "cut_short" | "caller_gone" | FailureKind;

/**
 * Largest `max_tokens`, and the ceiling of an answer to a request that sets none, in tokens. A lease holds credit for
 * this many tokens, so the engine must never deliver more.
 */
export const MAX_OUTPUT_TOKENS = 32_000;

/** What a model can be good at. The accuracy of a model is known for each of them, or for some. */
export const ABILITIES = ["knowledge", "maths", "code", "extraction", "prose"] as const;
export type Ability = (typeof ABILITIES)[number];

/** Shares of right answers by ability, 0 to 1. */
export type Accuracies = Partial<Record<Ability, number>>;
