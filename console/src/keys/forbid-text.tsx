interface Props {
  isSet: boolean;
  change: (isSet: boolean) => void;
  /** A developer cannot take it back. */
  isFixed?: boolean;
}

/** Whether the text of a key's requests is never kept. */
export function ForbidText({ isSet, change, isFixed = false }: Props) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isSet}
        disabled={isFixed}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      Never keep the text of its requests
    </label>
  );
}
