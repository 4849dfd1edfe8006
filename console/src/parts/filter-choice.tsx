interface Props {
  label: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  change: (value: string) => void;
}

/** One choice of a list, in the toolbar of a page. */
export function FilterChoice({ label, value, options, change }: Props) {
  return (
    <select aria-label={label} value={value} onChange={(event) => change(event.currentTarget.value)}>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}
