import { hash } from "node:crypto";
import { type JsonNode, parseJson } from "../contract/json.ts";
import type { Shape } from "../contract/terms.ts";
import type { Kind } from "../engine/difficulty/difficulty.ts";
import { closedAnswer } from "../engine/fuse/closed-answer.ts";
import { exactAnswer } from "../engine/fuse/exact-answer.ts";
import { valueKey } from "../engine/fuse/value.ts";

/**
 * How answers are compared: `closed` by the value of the final answer, `exact` character by character, `json` field by
 * field.
 */
export type FormName = "closed" | "exact" | "json";

/** The canonical form of the answer in a text; undefined if it has none. They take linear time and never throw. */
const FORMS: Readonly<Record<FormName, (text: string) => string | undefined>> = {
  closed: (text) => sameTruth(closedAnswer(text)),
  exact: exactAnswer,
  json: jsonForm,
};

const OF_KIND: Readonly<Partial<Record<Kind, FormName>>> = {
  closed: "closed",
  maths: "closed",
  extraction: "closed",
  output: "exact",
};

/** How answers of a kind and shape are compared, as plans do; undefined for prose, which cannot be compared. */
export function formName(kind: Kind, shape: Shape): FormName | undefined {
  return shape === "text" ? OF_KIND[kind] : "json";
}

/** The canonical form of an answer, by which two answers are the same; undefined if it has none. */
export function formOf(name: FormName, text: string): string | undefined {
  return text.length > MAX_TEXT ? undefined : FORMS[name](text);
}

/** The form of a draft, given the canonical form by which the plan has compared it. */
export function formOfCanonical(name: FormName, canonical: string): string | undefined {
  if (name === "json") return formOf(name, canonical);
  return name === "closed" ? sameTruth(canonical) : canonical;
}

/** Longest text that is compared, in UTF-16 units. Longer JSON would take milliseconds. */
const MAX_TEXT = 16_384;

/** Base64 characters of a digest: 66 bits. */
const DIGEST = 11;

/**
 * Digest of a form, from which only a guess of the form can be confirmed: 66 bits of SHA-256, keyed with the random
 * identifier of the generation. `o` before it marks the letters of options, `v` other values.
 */
export function digestOf(generation: string, form: string): string {
  const mark = /^[a-z](?:,[a-z])*$/.test(form) ? "o" : "v";
  return mark + hash("sha256", `${generation}\n${form}`, "base64url").slice(0, DIGEST);
}

/** The digests of an expected answer in each form that it can have. */
export function digestsOf(generation: string, expected: string): Partial<Record<FormName, string>> {
  const digests: Partial<Record<FormName, string>> = {};
  for (const name of ["closed", "exact", "json"] as const) {
    const form = formOf(name, expected);
    if (form !== undefined) digests[name] = digestOf(generation, form);
  }
  return digests;
}

/** Test data often has true or false for a question that is answered with yes or no. */
function sameTruth(form: string | undefined): string | undefined {
  return form === "true" ? "yes" : form === "false" ? "no" : form;
}

/** A JSON object with its members in one order and each value as `valueKey` compares it. */
function jsonForm(text: string): string | undefined {
  try {
    const node = parseJson(text);
    return node.kind === "object" ? keyOf(node) : undefined;
  } catch {
    return undefined;
  }
}

function keyOf(node: JsonNode): string {
  if (node.kind === "scalar") return valueKey(node);
  if (node.kind === "array") return `[${node.items.map(keyOf).join(",")}]`;
  const members = node.members.map(([name, value]) => `${JSON.stringify(name)}:${keyOf(value)}`);
  return `{${members.sort().join(",")}}`;
}
