/** Characters that are read of a prompt; more of it changes its difficulty little and would take time. */
const READ = 12_000;

/**
 * What the judge reads of a text: all of it up to 12,000 characters, else its first 6,000, 2,000 from the middle and its last 4,000, where the
 * question of a long prompt mostly stands. Always the same pieces for the same text.
 */
export function sample(text: string): string {
  if (text.length <= READ) return text;
  const middle = Math.floor(text.length / 2);
  return `${text.slice(0, 6000)}\n${text.slice(middle - 1000, middle + 1000)}\n${text.slice(-4000)}`;
}
