import { Field } from "./field.tsx";

interface Props<T extends string> {
  id: string;
  label: string;
  help?: string;
  value: T;
  options: readonly (readonly [value: T, label: string])[];
  change: (value: T) => void;
}

/** One choice of a list, in a form. */
export function Choice<T extends string>({ id, label, help, value, options, change }: Props<T>) {
  return (
    <Field id={id} label={label} help={help}>
      <select
        id={id}
        value={value}
        onChange={(event) => change(event.currentTarget.value as T)}
        {...(help ? { "aria-describedby": `${id}-help` } : {})}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}
