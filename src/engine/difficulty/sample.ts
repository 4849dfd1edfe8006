/** Characters of a prompt that are read. Reading more changes the difficulty little and takes time. */
const READ = 12_000;

/**
 * The part of a text that is rated: all of it up to 12,000 characters, else the first 6,000, 2,000 from the middle
 * and the last 4,000, which usually hold the question of a long prompt. Deterministic.
 */
export function sample(text: string): string {
  if (text.length <= READ) return text;
  const middle = Math.floor(text.length / 2);
  return `${text.slice(0, 6000)}\n${text.slice(middle - 1000, middle + 1000)}\n${text.slice(-4000)}`;
}
