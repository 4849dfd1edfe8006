import type { ComponentChildren, PartialInputHTMLAttributes } from "preact";
import { Field } from "./field.tsx";

type Attributes = Pick<
  PartialInputHTMLAttributes<HTMLInputElement>,
  "inputMode" | "required" | "pattern" | "title" | "placeholder" | "maxLength" | "spellcheck" | "autocapitalize"
>;

/** What an amount of credits looks like. */
export const CREDITS = { pattern: "\\d{1,10}(\\.\\d{1,6})?", title: "Credits, such as 250 or 0.5" };

interface Props extends Attributes {
  id: string;
  label: string;
  help?: ComponentChildren;
  value: string;
  change: (value: string) => void;
}

/** A labelled line of text in a form. Further attributes are those of the input. */
export function TextField({ id, label, help, change, ...attributes }: Props) {
  return (
    <Field id={id} label={label} help={help}>
      <input
        id={id}
        type="text"
        autocomplete="off"
        {...(help ? { "aria-describedby": `${id}-help` } : {})}
        {...attributes}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </Field>
  );
}
