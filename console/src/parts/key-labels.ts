/** What a row about a key says of it. */
interface NamedKey {
  /** Current name; can be empty. */
  readonly keyName: string;
  /** First characters of the secret; empty for a key of the console. */
  readonly keyPrefix: string;
}

/**
 * Names keys that are shown together, by identifier. Keys of one name, as a rotation leaves them, have the start of
 * their secrets, too, or their identifiers. One without a name has its identifier.
 */
export function keyLabels<Row extends NamedKey>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
): ReadonlyMap<string, string> {
  const count = new Map<string, number>();
  for (const { keyName } of rows) count.set(keyName, (count.get(keyName) ?? 0) + 1);
  const labelOf = (row: Row) => {
    const { keyName, keyPrefix } = row;
    if (!keyName) return idOf(row);
    return count.get(keyName) === 1 ? keyName : `${keyName} (${keyPrefix ? `${keyPrefix}…` : idOf(row)})`;
  };
  return new Map(rows.map((row) => [idOf(row), labelOf(row)]));
}
