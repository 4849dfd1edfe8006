import { type JsonNode, member, parseJson } from "../../contract/json.ts";
import type { Tools, WrittenCall } from "../../models/port/model.ts";
import type { Validators } from "../structured/validate.ts";
import { checkCalls } from "./check-calls.ts";
import { propertiesOf, ToolSchemas } from "./schemas.ts";

/** What a draft without calls votes for. */
export const NO_CALL = "no call";

/**
 * Canonical form of the calls of a draft: two drafts agree if they call the same tools with the same arguments. The
 * order of calls and of members does not count, `5.0` is `5`, and an argument with its default counts as left out.
 * @returns undefined if a call must not leave: then the draft has no vote
 */
export function canonicalCalls(
  calls: readonly WrittenCall[],
  tools: Tools,
  validators: Validators,
): string | undefined {
  const checked = checkCalls(calls, tools, validators);
  if (!checked.ok) return undefined;
  if (checked.calls.length === 0) return NO_CALL;
  const schemas = new ToolSchemas(tools.list);
  const forms = checked.calls.map(
    ({ name, arguments: given }) => `${name} ${canonical(parseJson(given), schemas.get(name))}`,
  );
  return forms.sort().join("\n");
}

/** The tools that a canonical form calls, each as often as it is called. */
export function namesOf(form: string): string {
  if (form === NO_CALL) return form;
  const names = form.split("\n").map((line) => line.slice(0, line.indexOf(" ")));
  return names.join("\n");
}

/** @param schema whose defaults do not count */
function canonical(node: JsonNode, schema?: JsonNode): string {
  if (node.kind === "array") return `[${node.items.map((item) => canonical(item)).join(",")}]`;
  if (node.kind === "scalar") return canonicalScalar(node.text);
  const properties = schema && propertiesOf(schema);
  const members = node.members.flatMap(([name, value]) => {
    const own = properties?.get(name);
    const usual = own && member(own, "default");
    const form = canonical(value, own);
    return usual && canonical(usual) === form ? [] : `${JSON.stringify(name)}:${form}`;
  });
  return `{${members.sort().join(",")}}`;
}

function canonicalScalar(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "number") return JSON.stringify(value);
  // Digits that a double does not have stay, and numbers beyond all doubles.
  const isDouble = Number.isFinite(value) && (Number.isSafeInteger(value) || !Number.isInteger(value));
  return isDouble ? String(value) : text;
}
