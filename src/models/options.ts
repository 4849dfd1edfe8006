import { isNeverTaken, outputLimit, refusedOption, roomForOutput, type VendorFailure } from "./refusal.ts";
import type { Forms, Option, WireCall, WireFormat } from "./wire/wire.ts";

/** What has been learned of one model from its refusals and answers. */
export interface Learned {
  forms: Forms;
  /** Largest output ceiling that the model accepts, thinking included, in tokens. */
  maxTokens: number;
  /** Whether the model thinks before it answers. */
  thinks: boolean;
}

/** The options of one call. They start as learned, and change with each refusal. */
export class CallOptions {
  readonly #format: WireFormat;
  readonly #learned: Learned;
  /** For each option, the first form that was not refused for good. Undefined before the first refusal. */
  #taken: Map<Option, number> | undefined;
  #forms: Forms;
  /** Output tokens that fit into the context window beside the prompt of this call. */
  #room = Number.POSITIVE_INFINITY;
  #isFitted = false;

  constructor(format: WireFormat, learned: Learned) {
    this.#format = format;
    this.#learned = learned;
    this.#forms = learned.forms;
  }

  get forms(): Forms {
    return this.#forms;
  }

  get thinks(): boolean {
    return this.#learned.thinks;
  }

  /** Largest output ceiling, thinking included, in tokens. */
  get maxTokens(): number {
    return Math.min(this.#learned.maxTokens, this.#room);
  }

  /**
   * Changes the option that the vendor refused.
   * @param sent the call that was refused, and the forms in which it was sent
   * @returns undefined if no other form can help
   */
  refuse(failure: VendorFailure, sent: WireCall, used: Forms): Option | undefined {
    if (failure.error.kind === "too_long") return this.#fit(failure.about, sent, used) ? "maxTokens" : undefined;
    const option = refusedOption(failure, sent, used, this.#format);
    if (option === undefined) return undefined;
    const limit = option === "maxTokens" ? outputLimit(failure.about, sent.maxTokens) : undefined;
    if (limit !== undefined) this.#learned.maxTokens = limit;
    else {
      if (isNeverTaken(option, failure.about, sent)) this.#takeBack(option, used[option]);
      this.#forms = { ...this.#forms, [option]: used[option] + 1 };
    }
    return option;
  }

  /** Passes over a form that would send the same refused body. @returns false if there is no further form */
  skip(option: Option, used: Forms): boolean {
    if (used[option] >= this.#format.forms[option]) return false;
    if (this.#taken?.get(option) === used[option]) this.#takeBack(option, used[option]);
    this.#forms = { ...this.#forms, [option]: used[option] + 1 };
    return true;
  }

  /** Keeps for later calls what was refused for good. Called when the vendor has taken the call. */
  learn(): void {
    for (const [option, form] of this.#taken ?? []) {
      if (form > this.#learned.forms[option]) this.#learned.forms = { ...this.#learned.forms, [option]: form };
    }
  }

  /** Notes that a form was refused for good. A form behind one that was refused for its value is not learned. */
  #takeBack(option: Option, form: number): void {
    this.#taken ??= new Map();
    if ((this.#taken.get(option) ?? this.#learned.forms[option]) === form) this.#taken.set(option, form + 1);
  }

  /**
   * Lowers the ceiling of a call that exceeds the context window together with its prompt, or leaves it out. Only once,
   * and only for this call, because it depends on the prompt.
   * @returns false if the prompt alone is too long
   */
  #fit(about: string, { maxTokens }: WireCall, used: Forms): boolean {
    const { forms, defaultMaxTokens } = this.#format;
    const isRequired = defaultMaxTokens !== undefined;
    if (this.#isFitted || maxTokens === undefined || (used.maxTokens >= forms.maxTokens && !isRequired)) return false;
    const room = roomForOutput(about, maxTokens);
    if (room === 0) return false;
    this.#isFitted = true;
    if (room === undefined && !isRequired) this.#forms = { ...this.#forms, maxTokens: forms.maxTokens };
    else this.#room = room ?? Math.ceil(maxTokens / 4);
    return true;
  }
}
