import type { ComponentChildren } from "preact";

interface Props {
  /** Identifier of the control; the help has `ID-help`. */
  id: string;
  label: string;
  help?: ComponentChildren;
  children: ComponentChildren;
}

/** A labelled control of a form. */
export function Field({ id, label, help, children }: Props) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {help && (
        <p id={`${id}-help`} class="help">
          {help}
        </p>
      )}
    </div>
  );
}
