interface Props<T extends string> {
  legend: string;
  /** True shows the legend above the choices. */
  titled?: boolean;
  /** Name of the group, unique on the page. */
  name: string;
  value: T;
  options: readonly (readonly [value: T, label: string])[];
  change: (value: T) => void;
}

/** One choice of a few, side by side. */
export function Segments<T extends string>({ legend, titled = false, name, value, options, change }: Props<T>) {
  return (
    <fieldset class={titled ? "field segments" : "segments"}>
      <legend class={titled ? "" : "hidden"}>{legend}</legend>
      <div>
        {options.map(([option, label]) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => change(option)} />
            {label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
