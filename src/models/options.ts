import type { ModelCall } from "./port/model.ts";
import { isNeverTaken, isOfValue, outputLimit, refusedOption, roomForOutput, type VendorFailure } from "./refusal.ts";
import type { Unopened } from "./wire/think.ts";
import type { Forms, Option, WireCall, WireFormat } from "./wire/wire.ts";

/** What has been learned of one model from its refusals and answers. */
export interface Learned {
  forms: Forms;
  /**
   * As `forms`, for one depth of reasoning or one type of format, by `valueKey`: a model may refuse one of them and
   * take the others.
   */
  readonly valueForms: Map<string, number>;
  /** Largest output ceiling that the model accepts, thinking included, in tokens. */
  maxTokens: number;
  /** Whether the model thinks before it answers. `perhaps`: it has written so, which its prompt may have asked for. */
  thinks: "no" | "perhaps" | "yes";
  /** Whether it leaves out the first mark of its thinking. */
  unopened: Unopened;
}

/** Whether the first mark of thinking may be missing. Without reasoning there is none, nor in JSON that is enforced. */
export function unopenedIn({ unopened }: Learned, { reasoning, format }: ModelCall): Unopened {
  return reasoning === "none" || format ? "no" : unopened;
}

/** The options of one call. They start as learned, and change with each refusal. */
export class CallOptions {
  readonly #format: WireFormat;
  readonly #learned: Learned;
  /** Type of the format that the call asks for. */
  readonly #formatType: string | undefined;
  /**
   * The first form that was not refused for good, by option, or by `valueKey`. Undefined before the first refusal.
   */
  #taken: Map<string, { readonly option: Option; readonly form: number }> | undefined;
  #forms: Forms;
  /** Output tokens that fit into the context window beside the prompt of this call. */
  #room = Number.POSITIVE_INFINITY;
  #isFitted = false;

  constructor(format: WireFormat, learned: Learned, call: Pick<ModelCall, "format" | "reasoning" | "tools">) {
    this.#format = format;
    this.#learned = learned;
    this.#formatType = call.format?.type;
    this.#forms = firstForms(learned, call);
  }

  get forms(): Forms {
    return this.#forms;
  }

  get thinks(): boolean {
    return this.#learned.thinks !== "no";
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
    // The model has failed at the format, which is not refused: the weaker forms may fail too, and cost a completion.
    else if (failure.error.retryable) this.#forms = { ...this.#forms, [option]: this.#format.forms[option] };
    else {
      if (isNeverTaken(option, failure.about, sent))
        this.#takeBack(isOfValue(option, failure.about) ? this.#valueKey(option, sent) : option, option, used[option]);
      this.#forms = { ...this.#forms, [option]: used[option] + 1 };
    }
    return option;
  }

  /** Passes over a form that would send the same refused body. @returns false if there is no further form */
  skip(option: Option, sent: WireCall, used: Forms): boolean {
    if (used[option] >= this.#format.forms[option]) return false;
    for (const key of [option, this.#valueKey(option, sent)])
      if (this.#taken?.get(key)?.form === used[option]) this.#takeBack(key, option, used[option]);
    this.#forms = { ...this.#forms, [option]: used[option] + 1 };
    return true;
  }

  /** Keeps for later calls what was refused for good. Called when the vendor has taken the call. */
  learn(): void {
    const { forms, valueForms } = this.#learned;
    for (const [key, { option, form }] of this.#taken ?? []) {
      if (key !== option) valueForms.set(key, Math.max(form, valueForms.get(key) ?? 0));
      else if (form > forms[option]) this.#learned.forms = { ...this.#learned.forms, [option]: form };
    }
  }

  /** Notes that a form was refused for good. A form behind one that was refused for its value is not learned. */
  #takeBack(key: string, option: Option, form: number): void {
    this.#taken ??= new Map();
    const { forms, valueForms } = this.#learned;
    const taken = this.#taken.get(key) ?? this.#taken.get(option);
    const first = taken?.form ?? Math.max(forms[option], valueForms.get(key) ?? 0);
    if (first === form) this.#taken.set(key, { option, form: form + 1 });
  }

  #valueKey(option: Option, { reasoning }: WireCall): string {
    return valueKey(option, option === "format" ? this.#formatType : reasoning);
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

function valueKey(option: Option, value: string | undefined): string {
  return `${option} ${value}`;
}

/** The forms with which a call starts. */
function firstForms(
  { forms, valueForms }: Learned,
  { format, reasoning, tools }: Pick<ModelCall, "format" | "reasoning" | "tools">,
): Forms {
  if (valueForms.size === 0) return forms;
  const first = (option: Option, value: string | undefined) =>
    Math.max(forms[option], valueForms.get(valueKey(option, value)) ?? 0);
  // The depth that is sent to a model that does not think beside tools.
  const depth = tools && forms.toolReasoning > 0 ? "none" : reasoning;
  return { ...forms, reasoning: first("reasoning", depth), format: first("format", format?.type) };
}
