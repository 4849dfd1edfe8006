/** Collects the values of an option that may be given several times. */
export function repeated(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}
