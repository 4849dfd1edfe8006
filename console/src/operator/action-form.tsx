import { useId, useState } from "preact/hooks";
import { Choice } from "../parts/choice.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { TextField } from "../parts/text-field.tsx";
import { toast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";

/** An input of a form: text, or a choice. */
export interface Input {
  readonly name: string;
  readonly label: string;
  readonly help?: string;
  readonly placeholder?: string;
  /** Values and labels of a choice. */
  readonly options?: readonly (readonly [value: string, label: string])[];
  /** Regular expression that the whole text must match. */
  readonly pattern?: string;
  /** Whether it may be empty. */
  readonly optional?: boolean;
}

interface Props {
  title: string;
  inputs: readonly Input[];
  /** Text of the button. */
  action: string;
  /** @returns a sentence that says what happened; empty for none */
  run: (values: Readonly<Record<string, string>>) => Promise<string>;
}

/** A form that does one thing and then is empty again. */
export function ActionForm({ title, inputs, action, run }: Props) {
  const id = useId();
  const initial = Object.fromEntries(inputs.map(({ name, options }) => [name, options?.[0]?.[0] ?? ""]));
  const [values, setValues] = useState<Readonly<Record<string, string>>>(initial);
  const { busy, error, run: start } = useAction();

  const submit = async () => {
    const done = await run(Object.fromEntries(Object.entries(values).map(([name, text]) => [name, text.trim()])));
    setValues(initial);
    if (done) toast(done);
  };
  return (
    <form class="form" onSubmit={(event) => start(submit, event)} aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {inputs.map((input) => (
        <Control
          key={input.name}
          id={`${id}-${input.name}`}
          input={input}
          value={values[input.name] ?? ""}
          change={(value) => setValues((before) => ({ ...before, [input.name]: value }))}
        />
      ))}
      {error !== undefined && <FailureNote error={error} />}
      <div class="buttons start">
        <button type="submit" disabled={busy}>
          {action}
        </button>
      </div>
    </form>
  );
}

interface ControlProps {
  id: string;
  input: Input;
  value: string;
  change: (value: string) => void;
}

function Control({ input: { name: _, options, optional = false, ...shown }, ...rest }: ControlProps) {
  if (options) return <Choice options={options} {...shown} {...rest} />;
  return <TextField required={!optional} {...shown} {...rest} />;
}
