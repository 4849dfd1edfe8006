import { Field } from "../parts/field.tsx";

interface Props {
  /** Of the input. */
  id: string;
  name: string;
  change: (name: string) => void;
  placeholder?: string;
}

/** The field with the name of a key. */
export function KeyName({ id, name, change, placeholder }: Props) {
  return (
    <Field id={id} label="Name">
      <input
        id={id}
        type="text"
        maxLength={200}
        autocomplete="off"
        data-autofocus
        value={name}
        placeholder={placeholder}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </Field>
  );
}
