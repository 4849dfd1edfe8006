import type { ComponentChildren } from "preact";

interface Props {
  /** Identifier of the control; the help has `ID-help`, what is wrong `ID-wrong`. */
  id: string;
  label: string;
  help?: ComponentChildren;
  /** What is wrong with the value; read out when it appears. */
  wrong?: ComponentChildren;
  children: ComponentChildren;
}

/** A labelled control of a form. */
export function Field({ id, label, help, wrong, children }: Props) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {wrong && (
        <p id={`${id}-wrong`} class="wrong" role="alert">
          {wrong}
        </p>
      )}
      {help && (
        <p id={`${id}-help`} class="help">
          {help}
        </p>
      )}
    </div>
  );
}
