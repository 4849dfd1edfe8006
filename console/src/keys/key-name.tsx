import { TextField } from "../parts/text-field.tsx";

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
    <TextField
      id={id}
      label="Name"
      maxLength={200}
      data-autofocus
      value={name}
      placeholder={placeholder}
      change={change}
    />
  );
}
