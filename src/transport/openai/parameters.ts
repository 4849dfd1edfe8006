import { ReasoningEffort, Verbosity } from "../../../gen/chorus/v1/chat_pb.js";
import { Effort } from "../../../gen/chorus/v1/generation_pb.js";
import { isOwnTag, isTag, MAX_TAGS } from "../../contract/subjects.ts";

/** The efforts of the parameters that name one. */
export const REASONING: Readonly<Record<ReasoningEffort, Effort>> = {
  [ReasoningEffort.UNSPECIFIED]: Effort.UNSPECIFIED,
  [ReasoningEffort.NONE]: Effort.LOW,
  [ReasoningEffort.MINIMAL]: Effort.LOW,
  [ReasoningEffort.LOW]: Effort.LOW,
  [ReasoningEffort.MEDIUM]: Effort.MEDIUM,
  [ReasoningEffort.HIGH]: Effort.HIGH,
  [ReasoningEffort.XHIGH]: Effort.HIGH,
  [ReasoningEffort.MAX]: Effort.HIGH,
};

/** What the models are told about the length of answers. */
export const VERBOSITY: Readonly<Record<Verbosity, string>> = {
  [Verbosity.UNSPECIFIED]: "",
  [Verbosity.LOW]: "Keep the answer short.",
  [Verbosity.MEDIUM]: "",
  [Verbosity.HIGH]: "Answer in detail.",
};

/** The first of the metadata that can be tags. Other programs' metadata has longer texts, and is no mistake. */
export function tagsOf(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const possible = Object.entries(metadata).filter(([name, value]) => isTag(name, value) && !isOwnTag(name));
  return Object.fromEntries(possible.slice(0, MAX_TAGS));
}

/** Instructions as one text. */
export function joined(...texts: readonly (string | undefined)[]): string {
  return texts.filter((text) => text !== undefined && text !== "").join("\n\n");
}

/** A member of an initializer, which must not be there with the value undefined. */
export function optional<K extends string, V>(name: K, value: V | undefined): { [name in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [name in K]: V });
}
