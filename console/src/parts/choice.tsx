import { Field } from "./field.tsx";

interface Props {
  id: string;
  label: string;
  help?: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  change: (value: string) => void;
}

/** One choice of a list, in a form. */
export function Choice({ id, label, help, value, options, change }: Props) {
  return (
    <Field id={id} label={label} help={help}>
      <select
        id={id}
        value={value}
        onChange={(event) => change(event.currentTarget.value)}
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
