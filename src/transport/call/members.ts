import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import { notice } from "../../generate/notices.ts";

/**
 * What becomes of the members of a request of another API that have no field here. Names are paths without indices:
 * `messages[].name`. Any other member is named in a notice `unknown_field`.
 */
export interface MemberRules {
  /** They would change the answer. Each function returns why a value is refused; undefined if it is not. */
  readonly refused: ReadonlyMap<string, (value: unknown) => string | undefined>;
  /** Without effect here. Each function returns whether a value asks for something; a notice then says so. */
  readonly idle: ReadonlyMap<string, (value: unknown) => boolean>;
}

/** For a member that is never taken. @param advice what to send in its place */
export function refuse(advice = "Leave it out."): (value: unknown) => string {
  return () => `is not supported. ${advice}`;
}

/** For a member whose values all ask for something, except these. */
export function unless(...values: readonly unknown[]): (value: unknown) => boolean {
  return (value) => !values.includes(value);
}

/** Most notices about members of one request. */
const MAX_NOTICES = 20;

/** Decides about the members of one request. */
export class Members {
  readonly notices: Notice[] = [];
  readonly #rules: MemberRules;
  readonly #noted = new Set<string>();

  constructor(rules: MemberRules) {
    this.#rules = rules;
  }

  /** @throws Failure invalid_request for a member that is refused */
  readonly add = (path: string, value: unknown): void => {
    const { refused, idle } = this.#rules;
    const name = withoutIndices(path);
    const refusal = refused.get(name)?.(value);
    if (refusal !== undefined) throw invalid(path, `${path} ${refusal}`);
    if (refused.has(name) || idle.get(name)?.(value) === false) return;
    if (idle.has(name)) this.noEffect(path);
    else this.#note(path, "unknown_field", "is not a field of this request. It was ignored.");
  };

  /** Notes a member that has no effect. Members whose paths differ in indices only share one notice. */
  noEffect(path: string, why = ""): void {
    this.#note(path, "no_effect", `has no effect here.${why === "" ? "" : ` ${why}`}`);
  }

  #note(path: string, code: string, text: string): void {
    const name = withoutIndices(path);
    if (this.#noted.has(name) || this.#noted.size === MAX_NOTICES) return;
    this.#noted.add(name);
    this.notices.push(notice(code, `${path} ${text}`, path));
  }
}

function withoutIndices(path: string): string {
  return path.replace(/\[\d+\]/g, "[]");
}
