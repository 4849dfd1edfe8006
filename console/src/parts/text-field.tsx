import type { ComponentChildren, PartialInputHTMLAttributes } from "preact";
import { Field } from "./field.tsx";

type Attributes = Pick<
  PartialInputHTMLAttributes<HTMLInputElement>,
  "inputMode" | "required" | "title" | "placeholder" | "maxLength" | "spellcheck" | "autocapitalize"
>;

/** What an amount of credits looks like. */
export const CREDITS = { pattern: "\\d{1,10}(\\.\\d{1,6})?", title: "Credits, such as 250 or 0.5" };

/** A pattern with white space around it, which comes with what is pasted and is removed before it is sent. */
export function spaced(pattern: string): string {
  return `\\s*(${pattern})\\s*`;
}

interface Props extends Attributes {
  id: string;
  label: string;
  help?: ComponentChildren;
  /** Regular expression that the whole value must match, apart from white space around it. */
  pattern?: string | undefined;
  value: string;
  change: (value: string) => void;
}

/** A labelled line of text in a form. Further attributes are those of the input. */
export function TextField({ id, label, help, change, pattern, ...attributes }: Props) {
  return (
    <Field id={id} label={label} help={help}>
      <input
        id={id}
        type="text"
        autocomplete="off"
        {...(help ? { "aria-describedby": `${id}-help` } : {})}
        {...(pattern ? { pattern: spaced(pattern) } : {})}
        {...attributes}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </Field>
  );
}
